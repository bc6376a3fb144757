"""What needs no Spark of the folder that codes are written to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from unittest.mock import patch

from snuh.spark import writing

JOB = {"format": writing.FORMAT, "documents": 2, "checksum": "x"}


def test_of_two_starts_with_other_parts_the_first_says_how_many(tmp_path: Path) -> None:
    beside, write_json = tmp_path / ".codes.0", writing.write_json

    def overtaken(path: Path, value: dict[str, Any], **options: Any) -> None:
        write_json(path, value, **options)
        if value["parts"] == 3:  # and so before its folder gets its name
            writing._open_job(beside, JOB, 5)

    with patch.object(writing, "write_json", overtaken):
        writing._open_job(beside, JOB, 3)
    writing._open_job(beside, JOB, 7)
    assert writing.read_json(beside / writing.MANIFEST) == {**JOB, "parts": 5}
    assert os.listdir(tmp_path) == [beside.name]
