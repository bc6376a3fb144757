"""Bad documents are reported in one line, before anything is written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import snuh
from snuh.errors import InputError
from snuh.spark import write_codes


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"id": ["a", "b", "a"], "text": ["x", "y", "z"]}, 'the id "a" occurs 2 times: ids must be unique'),
        ({"id": ["a", "b"], "text": ["x", None]}, 'the document "b" has no text (null)'),
        ({"id": ["a", ""], "text": ["x", "y"]}, "1 documents have no id"),
        ({"id": ["a"], "body": ["x"]}, 'the source has no column "text"'),
        ({"id": ["a"], "text": [1]}, 'the column "text" must hold strings, got bigint'),
        (
            {"id": pa.array([], pa.string()), "text": pa.array([], pa.string())},
            "the source holds no documents",
        ),
    ],
)
def test_bad_documents_are_reported_in_one_line(
    spark: Any, model: snuh.Model, tmp_path: Path, columns: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        write_codes(spark.createDataFrame(pa.table(columns)), model, tmp_path / "codes")
    assert message in str(caught.value)
    assert os.listdir(tmp_path) == []
