"""Documents are added to collections of every engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import snuh
from snuh.spark import add_to_collection
from tests.collection.milvus_server import MilvusServer
from tests.collection.postgres_server import PostgresServer


@contextmanager
def _folder(path: Path) -> Iterator[str]:
    yield str(path / "toy")


@contextmanager
def _postgres(_: Path) -> Iterator[str]:
    server = PostgresServer()
    try:
        yield server.address("toy", database=server.new_database())
    finally:
        server.stop()


@contextmanager
def _milvus(_: Path) -> Iterator[str]:
    server = MilvusServer()
    try:
        yield server.address("toy")
    finally:
        server.stop()


@pytest.mark.parametrize("engine", [_folder, _postgres, _milvus])
def test_documents_are_added_once(
    frame: Any,
    records: list[dict[str, Any]],
    model: snuh.Model,
    tmp_path: Path,
    engine: Callable[[Path], AbstractContextManager[str]],
) -> None:
    with engine(tmp_path) as address:
        snuh.Collection.create(address, model).close()
        for counts in ((1200, 0), (0, 1200)):
            added = add_to_collection(frame, address)
            assert (added.inserted, added.replaced) == counts
        with snuh.Collection(address) as collection:
            assert len(collection) == 1200
            document = collection.get("doc-5")
            assert (document.text, document.labels) == (records[5]["text"], ("topic1",))


def test_columns_are_converted_alike_for_a_folder_and_a_server(
    spark: Any, model: snuh.Model, tmp_path: Path
) -> None:
    hour = datetime(2020, 1, 1, 12, tzinfo=UTC)
    table = pa.table(
        {
            "id": ["a", "b"],
            "text": ["x", "y"],
            "hour": pa.array([hour, None], pa.timestamp("us", tz="UTC")),
            "map": pa.array([[("k", 1.5)], [("l", None)]], pa.map_(pa.string(), pa.float64())),
            "bytes": [b"1", b"2"],
            "list": [[1, 2], []],
        }
    )
    frame = spark.createDataFrame(table)
    metadata = []
    with _postgres(tmp_path) as server:
        for address in (str(tmp_path / "toy"), server):
            snuh.Collection.create(address, model).close()
            add_to_collection(frame, address)
            with snuh.Collection(address) as collection:
                metadata.append([document.metadata for document in collection.documents()])
    assert sorted(metadata[0], key=str) == sorted(metadata[1], key=str)
    first = next(fields for fields in metadata[0] if fields["map"] == {"k": 1.5})
    assert first.keys() == {"hour", "map", "list"} and datetime.fromisoformat(first["hour"]) == hour
