"""Documents in memory are read like those of files."""

from __future__ import annotations

import datetime
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from snuh.corpus import Document, open_source
from snuh.corpus.rows import checked_documents
from snuh.errors import InputError

ROWS = [
    {"id": "a", "text": "first", "labels": ["x", "y"], "split": "dev", "stars": 4, "day": None},
    {
        "id": "b",
        "text": "second",
        "labels": [],
        "split": "test",
        "stars": None,
        "day": datetime.date(2024, 5, 1),
    },
]
DOCUMENTS = [
    Document("a", "first", ("x", "y"), "val", {"stars": 4, "day": None}),
    Document("b", "second", (), "test", {"stars": None, "day": "2024-05-01"}),
]


class Dataset:
    """Yields dicts, as a dataset of Hugging Face does, each time it is iterated."""

    def __iter__(self) -> Any:
        return iter([{**row, "day": row["day"] and str(row["day"])} for row in ROWS])


@pytest.mark.parametrize(
    "rows",
    [
        pa.Table.from_pylist(ROWS),
        pd.DataFrame(ROWS),
        pl.DataFrame(ROWS),
        Dataset(),
        DOCUMENTS,
        iter(DOCUMENTS),
    ],
)
def test_tables_datasets_and_lists_are_sources(rows: Any) -> None:
    source = open_source(rows)
    assert list(source) == DOCUMENTS
    assert list(source) == DOCUMENTS  # read once more


def test_texts_are_numbered() -> None:
    expected = [Document("1", "first"), Document("2", "second")]
    assert list(open_source(["first", "second"])) == expected
    assert list(open_source(pd.Series(["first", "second"]))) == expected
    assert list(open_source(pd.DataFrame({"text": ["first", "second"]}))) == expected


def test_columns_may_have_other_names() -> None:
    frame = pd.DataFrame({"key": [7], "body": ["t"], "topic": ["x"], "part": ["train"]}).set_index("key")
    source = open_source(frame, text_field="body", id_field="key", labels_field="topic", split_field="part")
    assert list(source) == [Document("7", "t", ("x",), "train")]


def test_a_table_of_many_rows_is_read_in_order() -> None:
    numbers = [str(number) for number in range(5000)]
    assert [document.text for document in open_source(pa.table({"text": numbers}))] == numbers


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"body": "t"}], 'document 1: there is no field "text"'),
        ([{"text": "t"}, {"text": 5}], 'document 2: "text" must be a string, got a number'),
        ([{"text": "t", "id": "a"}] * 2, 'document 2: the id "a" is already used by document 1'),
        (["t", 5], "document 2 must be a string, a Document or a mapping with a text, got int"),
        (pd.DataFrame({"text": ["t", 5]}), "cannot read this DataFrame as a table"),
        ({"text": "t"}, "expected several documents, got one dict"),
        (7, "expected several documents, got one int"),
    ],
)
def test_what_cannot_be_read_is_refused(rows: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        list(open_source(rows))
    assert message in str(caught.value)


def test_documents_for_a_collection_may_be_a_table() -> None:
    assert list(checked_documents(pd.DataFrame(ROWS), 100)) == DOCUMENTS
    with pytest.raises(InputError, match='document 1 has no "id"'):
        list(checked_documents(pd.DataFrame({"text": ["t"]}), 100))
