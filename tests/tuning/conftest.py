from __future__ import annotations

import pytest

from snuh.corpus import open_source
from snuh.tuning.objective import TuningData, read_tuning_data
from tests.worlds import planted_topics, write_jsonl


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> TuningData:
    """A corpus of four topics, read."""
    path = write_jsonl(tmp_path_factory.mktemp("rows") / "topics.jsonl", planted_topics())
    return read_tuning_data(open_source(path), {})
