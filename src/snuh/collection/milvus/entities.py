"""The rows of a collection in Milvus: one holds a document and its code, so that they cannot disagree.

| field | of a document | of anything else |
|---|---|---|
| key | digest of its id: a document that is written twice is there once | its name |
| seq | its place in the order of insertion | 0 |
| write | number of the write that it comes from | the same |
| kind | DOCUMENT, or WITHOUT_CODE | PIECE, FIELD or FACT |
| pieces | rows that hold it, where it is too large for one; else 0 | 0 |
| size | bytes of `about`, `text` and its pieces | the same |
| about | id, split, labels and metadata; with `pieces` the digest that leads to them | {} |
| text | its text | what it holds |
| code | its code; zeros without one | zeros |

A piece is a part of a large document or of a file of the model, a field is a name that metadata have had.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from snuh.collection.backend import Columns, NewDocument, to_columns
from snuh.corpus import Document
from snuh.filters.tree import ID, LABELS, SPLIT

DOCUMENT, WITHOUT_CODE, PIECE, FIELD, FACT = range(5)
MODEL_KEY = "model"  # of the list of the model's files, which is always there
MAX_TEXT, MAX_ABOUT = 65_535, 60_000  # bytes that Milvus takes are 65,535 and 65,536
PIECE_CHARACTERS = MAX_TEXT // 4
LONG_NUMBER = re.compile(r"\d{19}")  # may be beyond 64 bits, which its client reads as a float

TYPES = {
    "key": "VARCHAR",
    "seq": "INT64",
    "write": "INT64",
    "kind": "INT8",
    "pieces": "INT64",
    "size": "INT64",
    "about": "JSON",
    "text": "VARCHAR",
    "code": "BINARY_VECTOR",
}


def schema(bits: int) -> list[dict[str, Any]]:
    """Return the fields as Milvus is told of them."""
    more: dict[str, dict[str, Any]] = {
        "key": {"is_primary": True, "max_length": 200},
        "text": {"max_length": MAX_TEXT},
        "code": {"dim": bits},
    }
    return [{"field_name": name, "datatype": kind, **more.get(name, {})} for name, kind in TYPES.items()]


@dataclass(frozen=True, slots=True)
class Row:
    """One row; its code is None where it has none."""

    key: str
    kind: int
    text: str
    write: int
    seq: int = 0
    pieces: int = 0
    about: str = "{}"
    code: bytes | None = None

    @property
    def size(self) -> int:
        """Bytes of what is long in it, and in its pieces about."""
        return len(self.about.encode()) + len(self.text.encode()) + self.pieces * PIECE_CHARACTERS


def to_columns_of(rows: Sequence[Row], *, width: int) -> dict[str, list[Any]]:
    """Return rows as columns, with zeros of `width` bytes where a row has no code."""
    columns: dict[str, list[Any]] = {
        name: [getattr(row, name) for row in rows] for name in TYPES if name != "code"
    }
    return {**columns, "code": [row.code or bytes(width) for row in rows]}


# Documents


def key_of(doc_id: str) -> str:
    """Return the key of a document."""
    return hashlib.blake2b(doc_id.encode(), digest_size=16).hexdigest()


def rows_of(new: NewDocument, *, seq: int, write: int) -> list[Row]:
    """Return the row of a document, and before it the pieces of a large one; InputError for what is none."""
    columns = to_columns(new.document)
    about = _about(columns)
    key, kind = key_of(columns.id), WITHOUT_CODE if new.code is None else DOCUMENT
    fits = len(about.encode()) <= MAX_ABOUT and len(columns.text.encode()) <= MAX_TEXT
    if fits and not LONG_NUMBER.search(columns.metadata):
        return [Row(key, kind, columns.text, write, seq, 0, about, new.code)]
    whole = json.dumps(columns, ensure_ascii=False)
    digest = hashlib.blake2b(whole.encode(), digest_size=8).hexdigest()
    pieces = list(pieces_of(f"{key}/{digest}", whole, write=write))
    led = json.dumps({"digest": digest})
    return [*pieces, Row(key, kind, "", write, seq, len(pieces), led, new.code)]


def _about(columns: Columns) -> str:
    doc_id, split = (json.dumps(value, ensure_ascii=False) for value in (columns.id, columns.split))
    return f'{{"id": {doc_id}, "split": {split}, "labels": {columns.labels}, "metadata": {columns.metadata}}}'


def to_document(found: Mapping[str, Any], pieces: Mapping[str, str]) -> Document:
    """Return the document of a row as Milvus gives it; pieces by key, where it has some."""
    if found["pieces"]:
        doc_id, split, labels, metadata, text = json.loads("".join(pieces[key] for key in piece_keys(found)))
        return Document(doc_id, text, tuple(json.loads(labels)), split, json.loads(metadata))
    about = found["about"]
    return Document(about["id"], found["text"], tuple(about["labels"]), about["split"], about["metadata"])


def record_of(document: Document) -> dict[str, object]:
    """Return what a filter is asked of."""
    return {**document.metadata, ID: document.id, SPLIT: document.split, LABELS: document.labels}


# Pieces


def pieces_of(name: str, text: str, *, write: int) -> Iterator[Row]:
    """Yield rows that hold a text; at least one."""
    for number, start in enumerate(range(0, max(1, len(text)), PIECE_CHARACTERS)):
        yield Row(f"{name}/{number}", PIECE, text[start : start + PIECE_CHARACTERS], write)


def piece_keys(found: Mapping[str, Any]) -> list[str]:
    """Return the keys of the pieces of a row as Milvus gives it."""
    digest = found["about"]["digest"] if found["pieces"] else ""
    return [f"{found['key']}/{digest}/{number}" for number in range(found["pieces"])]


def field_rows(names: Iterable[str], *, write: int) -> list[Row]:
    """Return rows that remember names of metadata; one that is too long is cut, and cannot be asked for."""
    return [Row(field_key(name), FIELD, name[:PIECE_CHARACTERS], write) for name in names]


def field_key(name: str) -> str:
    """Return the key of a name of metadata."""
    return f"field/{hashlib.blake2b(name.encode(), digest_size=16).hexdigest()}"
