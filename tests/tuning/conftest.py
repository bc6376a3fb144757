from __future__ import annotations

import pytest

from snuh.corpus import open_source
from snuh.tuning.rows import Rows, read_rows
from tests.worlds import planted_topics, write_jsonl


@pytest.fixture(scope="session")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """A corpus of four topics, read."""
    path = write_jsonl(tmp_path_factory.mktemp("rows") / "topics.jsonl", planted_topics())
    return read_rows(open_source(path), {})
