from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from snuh.corpus import Document, TextSource, open_source
from snuh.errors import InputError


def write(tmp_path: Path, columns: dict[str, Any]) -> Path:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(columns), path)
    return path


def read(path: Path) -> list[Document]:
    source = open_source(path)
    assert isinstance(source, TextSource)
    return list(source)


def test_columns_are_taken_by_name(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        {
            "id": [10, 11],
            "text": ["one", ""],
            "labels": [["x", "y"], None],
            "split": pa.array(["cv", None]).dictionary_encode(),
            "day": [datetime.date(2024, 2, 3), None],
            "score": [float("nan"), 0.5],
            "image": [b"\x00", b"\xff"],
        },
    )
    assert read(path) == [
        Document("10", "one", ("x", "y"), "val", {"day": "2024-02-03", "score": None}),
        Document("11", "", metadata={"day": None, "score": 0.5}),
    ]


def test_bytes_are_left_out_wherever_they_are(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        {
            "text": ["one"],
            "image": [{"bytes": b"\x89PNG", "path": "a.png"}],
            "images": [[b"\x00", b"\x01"]],
            "parts": pa.array([[("thumb", b"\x00")]], pa.map_(pa.string(), pa.binary())),
            "kind": pa.array([b"\x00"]).dictionary_encode(),
            "fixed": pa.array([b"\x00\x01"], pa.binary(2)),
        },
    )
    assert read(path)[0].metadata == {"image": {"path": "a.png"}, "images": [], "parts": {}}


def test_rows_are_numbered_and_progress_is_reported_over_batches(tmp_path: Path) -> None:
    source = open_source(write(tmp_path, {"text": [str(number) for number in range(5000)]}))
    assert isinstance(source, TextSource)
    reports: list[float] = []
    documents = list(source.documents(reports.append))
    assert [document.id for document in documents] == [str(number) for number in range(1, 5001)]
    assert reports == sorted(reports)
    assert reports[0] == 0.0
    assert reports[-1] == 1.0
    assert any(0.3 < report < 0.7 for report in reports)


def test_a_missing_text_column_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r'a\.parquet row 1: there is no field "text".*"id", "body"'):
        read(write(tmp_path, {"id": ["a"], "body": ["b"]}))


def test_a_null_text_is_refused_with_its_row(tmp_path: Path) -> None:
    with pytest.raises(InputError, match='row 2: "text" must be a string, got null'):
        read(write(tmp_path, {"text": ["a", None]}))


def test_duplicate_ids_are_refused_with_both_rows(tmp_path: Path) -> None:
    with pytest.raises(InputError, match='row 3: the id "a" is already used on row 1'):
        read(write(tmp_path, {"id": ["a", "b", "a"], "text": ["", "", ""]}))


def test_no_rows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there are no documents in it"):
        read(write(tmp_path, {"text": pa.array([], pa.string())}))


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    column = pa.array(["x"])
    pq.write_table(pa.Table.from_arrays([column, column], names=["text", "text"]), path)
    with pytest.raises(InputError, match='the column "text" appears twice'):
        read(path)


@pytest.mark.parametrize("damage", ["not parquet", "cut", "middle"])
def test_a_damaged_file_is_refused(tmp_path: Path, damage: str) -> None:
    path = write(tmp_path, {"text": [str(number) * 20 for number in range(5000)]})
    data = path.read_bytes()
    changed = {
        "not parquet": b"text\n",
        "cut": data[: len(data) // 2],
        "middle": data[:8] + bytes(200) + data[208:],
    }
    path.write_bytes(changed[damage])
    with pytest.raises(InputError, match=r"a\.parquet: not a Parquet file, or a damaged one") as caught:
        read(path)
    assert "\n" not in str(caught.value)
