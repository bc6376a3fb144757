"""One cluster and one toy corpus for all tests of this package."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import snuh
from snuh.spark import open_session, read_documents
from tests.spark.cluster import MASTER, SETTINGS, require_java
from tests.worlds import planted_topics, write_jsonl


@pytest.fixture(scope="package")
def spark() -> Iterator[Any]:
    require_java()
    with open_session(MASTER, settings=SETTINGS) as session:
        yield session
        application = session.sparkContext.applicationId
    home = Path(sys.modules["pyspark"].__path__[0])
    # The executors' folder. Clusters that start in the same second share its name: under xdist it stays.
    if "PYTEST_XDIST_WORKER" not in os.environ:
        shutil.rmtree(home / "work" / application, ignore_errors=True)


@pytest.fixture(scope="package")
def records() -> list[dict[str, Any]]:
    return planted_topics(1200)


@pytest.fixture(scope="package")
def source(records: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_jsonl(tmp_path_factory.mktemp("source") / "toy.jsonl", records)


@pytest.fixture(scope="package")
def frame(spark: Any, source: Path) -> Any:
    return read_documents(spark, str(source))


@pytest.fixture(scope="package")
def model(records: list[dict[str, Any]]) -> snuh.Model:
    hasher = snuh.TextHasher("itq", 32).fit([record["text"] for record in records])
    assert hasher.model_ is not None
    return hasher.model_


@pytest.fixture(scope="package")
def codes(model: snuh.Model, records: list[dict[str, Any]]) -> dict[str, bytes]:
    """Codes by id, computed without Spark."""
    encoded = model.encode([record["text"] for record in records])
    return {record["id"]: code.tobytes() for record, code in zip(records, encoded, strict=True)}
