"""The rows of a collection in Milvus: fields, conversion of documents, and filter expressions.

| field | in the row of a document | in another row |
|---|---|---|
| key | digest of the id, so that writing a document twice leaves one row | name of the row |
| seq | position in the order of insertion, see `first_seq` | 0 |
| kind | DOCUMENT, or UNSEARCHABLE where the model knows none of its words | PIECE, FIELD or FACT |
| pieces | "DIGEST/N" where the document is stored in N further rows; else "" | "" |
| about | id, split, labels and metadata; {} where it is stored in pieces | {} |
| text | text; "" where it is stored in pieces | content |
| code | code; zeros where there is none | zeros |

A PIECE holds a part of the model, or of a document that exceeds the fields of Milvus. A FIELD holds a name
that metadata have had. FACT rows are the model (its files, in pieces), the version and the index settings.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from pymilvus import CollectionSchema, DataType, FieldSchema
from pymilvus.milvus_client import IndexParams

from snuh.collection.backend import NewDocument, is_storable, to_columns
from snuh.corpus import Document
from snuh.filters import Filter
from snuh.filters.tree import ID, LABELS, SPLIT, And, Comparison, Contains, Field, In, IsNull, Not, Or, Value

Row: TypeAlias = dict[str, Any]  # by field

DOCUMENT, UNSEARCHABLE, PIECE, FIELD, FACT = range(5)
IS_DOCUMENT, IS_SEARCHABLE = f"kind <= {UNSEARCHABLE}", f"kind == {DOCUMENT}"
IS_FIELD = f"kind == {FIELD}"
DEFAULTS: Row = {"seq": 0, "pieces": "", "about": "{}", "text": ""}  # of fields that a row leaves out

MAX_TEXT_BYTES, MAX_ABOUT_BYTES = 65_535, 60_000  # Milvus takes 65,535 and 65,536
PIECE_CHARACTERS = MAX_TEXT_BYTES // 4
NLIST = 1_024  # lists of the index of the codes in each segment; fewer in a small one
LONG_INTEGER = re.compile(r"\d{19}")  # may exceed 64 bits, and pymilvus would read a float

EPOCH_MILLISECONDS = 1_577_836_800_000  # 2020-01-01
TIMESTAMP_COUNTER_BITS, COUNTER_BITS, BATCH_BITS = 18, 14, 8
SEQS_PER_TIMESTAMP = 1 << BATCH_BITS

PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]{1,100}")
CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
MAX_EXACT_NUMBER = 2**52  # integers and floats below compare alike
MAX_STRING_CHARACTERS = 1_000


def collection_schema(bits: int, *, description: str = "") -> CollectionSchema:
    """Return the fields of a collection with codes of `bits` bits."""
    fields = [
        FieldSchema("key", DataType.VARCHAR, is_primary=True, max_length=200),
        FieldSchema("seq", DataType.INT64),
        FieldSchema("kind", DataType.INT8),
        FieldSchema("pieces", DataType.VARCHAR, max_length=40),
        FieldSchema("about", DataType.JSON),
        FieldSchema("text", DataType.VARCHAR, max_length=MAX_TEXT_BYTES),
        FieldSchema("code", DataType.BINARY_VECTOR, dim=bits),
    ]
    return CollectionSchema(fields, description=description, auto_id=False, enable_dynamic_field=False)


def index_params() -> IndexParams:
    """Return the indexes: of the codes, and of the order of insertion."""
    indexes = IndexParams()
    indexes.add_index(
        "code", "BIN_IVF_FLAT", index_name="code", metric_type="HAMMING", params={"nlist": NLIST}
    )
    indexes.add_index("seq", "STL_SORT", index_name="seq")
    return indexes


def first_seq(timestamp: int) -> int:
    """Return the first of the 256 seqs that belong to a timestamp of the server.

    The server gives each timestamp (milliseconds, and a counter of 18 bits) once. So writers that do not know
    of each other get different seqs, in the order in which they asked for timestamps. The counter is cut to
    14 bits, so seqs would repeat if the server gave more than 16,384 timestamps in a millisecond.
    """
    milliseconds, counter = divmod(timestamp, 1 << TIMESTAMP_COUNTER_BITS)
    counter = min(counter, (1 << COUNTER_BITS) - 1)
    return ((milliseconds - EPOCH_MILLISECONDS) << COUNTER_BITS | counter) << BATCH_BITS


def sampled(expression: str, fraction: float) -> str:
    """Return an expression for a random part of the matching documents: their keys are digests."""
    return expression if fraction >= 1 else f'{expression} and key < "{int(16**8 * fraction):08x}"'


# Documents


def document_key(doc_id: str) -> str:
    """Return the key of a document."""
    return _digest(doc_id, 16)


def field_row(name: str) -> Row:
    """Return the row of a metadata field; a very long name is truncated."""
    return {"key": f"field/{_digest(name, 16)}", "kind": FIELD, "text": name[:PIECE_CHARACTERS]}


def document_rows(new: NewDocument) -> list[Row]:
    """Return the rows of a document, the one with its code last; InputError where it cannot be stored."""
    columns = to_columns(new.document)
    row = {"key": document_key(columns.id), "kind": UNSEARCHABLE if new.code is None else DOCUMENT}
    if new.code is not None:
        row["code"] = new.code
    doc_id, split = (json.dumps(value, ensure_ascii=False) for value in (columns.id, columns.split))
    about = (
        f'{{"id": {doc_id}, "split": {split}, "labels": {columns.labels}, "metadata": {columns.metadata}}}'
    )
    fits = len(about.encode()) <= MAX_ABOUT_BYTES and len(columns.text.encode()) <= MAX_TEXT_BYTES
    if fits and not LONG_INTEGER.search(columns.metadata):
        return [{**row, "about": about, "text": columns.text}]
    return split_row(row, json.dumps(columns, ensure_ascii=False))


def split_row(row: Row, content: str) -> list[Row]:
    """Return a row after those that hold its long content."""
    digest = _digest(content, 8)
    parts = [content[start : start + PIECE_CHARACTERS] for start in range(0, len(content), PIECE_CHARACTERS)]
    keys = [f"{row['key']}/{digest}/{number}" for number in range(len(parts))]
    pieces = [{"key": key, "kind": PIECE, "text": part} for key, part in zip(keys, parts, strict=True)]
    return [*pieces, {**row, "pieces": f"{digest}/{len(pieces)}"}]


def piece_keys(row: Row) -> list[str]:
    """Return the keys of the rows that hold the content of a row; none where it holds its own."""
    digest, _, count = row["pieces"].partition("/")
    return [f"{row['key']}/{digest}/{number}" for number in range(int(count or 0))]


def to_document(row: Row, texts: Mapping[str, str]) -> Document:
    """Return the document of a row; KeyError where the text of one of its pieces, by key, is missing."""
    if row["pieces"]:
        content = json.loads("".join(texts[key] for key in piece_keys(row)))
        doc_id, split, labels, metadata, text = content
        return Document(doc_id, text, tuple(json.loads(labels)), split, json.loads(metadata))
    about = row["about"]
    return Document(about["id"], row["text"], tuple(about["labels"]), about["split"], about["metadata"])


def filter_record(document: Document) -> dict[str, object]:
    """Return what a filter is matched against."""
    return {**document.metadata, ID: document.id, SPLIT: document.split, LABELS: document.labels}


def _digest(text: str, size: int) -> str:
    return hashlib.blake2b(text.encode(), digest_size=size).hexdigest()


# Filters


def filter_expression(where: Filter | None) -> str:
    """Return an expression that selects every document that a filter lets through, and perhaps more.

    It starts with " and ", to be appended to another; "" where Milvus cannot help. Its results are filtered
    again with `snuh.filters.matches`, so only what all versions of Milvus evaluate alike is used: nothing
    that depends on missing fields, and no strings or numbers that could be read in two ways.
    """
    expression = None if where is None else _expression(where)
    return "" if expression is None else f' and (pieces != "" or {expression})'


def _expression(where: Filter) -> str | None:
    match where:
        case And(parts):
            known = [text for part in parts if (text := _expression(part)) is not None]
            return f"({' and '.join(known)})" if known else None
        case Or(parts):
            texts = [_expression(part) for part in parts]
            return None if None in texts else f"({' or '.join(text for text in texts if text)})"
        case Not(Not(part)):
            return _expression(part)
        case Not(IsNull(field)):
            return None if (path := _path(field)) is None else f"(exists {path})"
        case In(field, values):
            return _one_of(field, values)
        case Comparison(field, "=", value):
            return _one_of(field, (value,))
        case Comparison(field, operator, value):
            path, literal = _path(field), _literal(value)
            return None if path is None or literal is None else f"({path} {operator} {literal})"
        case Contains(field, str(value)):
            path, literal = _path(field), _literal(value)
            return None if path is None or literal is None else f"json_contains({path}, {literal})"
    return None


def _one_of(field: Field, values: Iterable[Value | None]) -> str | None:
    path = _path(field)
    groups: dict[type, list[str]] = {}  # the values of a list in Milvus have one type
    for value in values:
        if path is None or value is None or (literal := _literal(value)) is None:
            return None
        if field.keys == (ID,):
            path, literal = "key", f'"{document_key(str(value))}"'
        groups.setdefault(int if literal.lstrip("-").isdigit() else type(value), []).append(literal)
    return "(" + " or ".join(f"{path} in [{', '.join(texts)}]" for texts in groups.values()) + ")"


def _path(field: Field) -> str | None:
    if not all(PLAIN_KEY.fullmatch(key) for key in field.keys):
        return None
    keys = field.keys if field.keys[0] in (ID, SPLIT, LABELS) else ("metadata", *field.keys)
    return "about" + "".join(f'["{key}"]' for key in keys)


def _literal(value: Value) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        if len(value) > MAX_STRING_CHARACTERS or CONTROL_CHARACTER.search(value) or not is_storable(value):
            return None
        return json.dumps(value, ensure_ascii=False)
    if abs(value) >= MAX_EXACT_NUMBER:
        return None
    return str(int(value)) if value == int(value) else repr(value)
