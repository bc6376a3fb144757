"""Reading and writing the rows of a collection, in requests of a bounded size."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from snuh.collection.milvus.connection import Connection
from snuh.collection.milvus.entities import (
    DOCUMENT,
    FIELD,
    MODEL_KEY,
    PIECE,
    TYPES,
    WITHOUT_CODE,
    Row,
    piece_keys,
    to_columns_of,
    to_document,
)
from snuh.collection.milvus.facts import Facts
from snuh.collection.results import CodeRows
from snuh.corpus import Document
from snuh.errors import CollectionError, ModelError

IS_DOCUMENT, HAS_CODE = f"kind <= {WITHOUT_CODE}", f"kind == {DOCUMENT}"
WINDOW = 16_384  # seqs, and so documents, that are listed in one request
MAX_KEYS, MAX_PIECES = 4_096, 128  # in one request
MAX_ABOUTS = 500  # metadata in one request, each of up to 60,000 bytes
MAX_BYTES = 8_000_000  # the server takes and gives up to 64 MB in one
MAX_ROWS = 10_000
NO_ROWS = [{"count(*)": 0}]
MAX_SECONDS, PAUSE_SECONDS = 10.0, 0.2  # to wait for a server that has found nothing yet


class Rows:
    """The rows of the documents in use, with all that was written before the first of them was read."""

    def __init__(self, connection: Connection, facts: Facts) -> None:
        self.connection, self.facts = connection, facts
        self._as_of: int | None = None
        self._patience = MAX_SECONDS

    @property
    def as_of(self) -> int:
        """The server's time when the first was read."""
        if self._as_of is None:
            self._as_of = self.connection.now()
        return self._as_of

    def see_newest(self) -> None:
        """See what was written until now as well."""
        self._as_of = None

    # Reading

    def query(
        self, condition: str, fields: Sequence[str], *, limit: int | None = None
    ) -> list[dict[str, Any]]:
        """Return rows that meet a condition, in no order."""
        while True:
            found = self._query(condition, fields, limit=limit)
            if (found and found != NO_ROWS) or self.is_ready():
                return found

    def _query(
        self, condition: str, fields: Sequence[str], *, limit: int | None = None
    ) -> list[dict[str, Any]]:
        return self.connection.query(self.facts.documents, condition, fields, as_of=self.as_of, limit=limit)

    def is_ready(self) -> bool:
        """Tell whether an empty answer is to be believed; wait a little where it is not.

        After a crash Milvus may say for a moment that there is nothing at all: then the model is missing too.
        """
        if self._query(f'key == "{MODEL_KEY}"', ["key"]):
            return True
        self._patience -= PAUSE_SECONDS
        if self._patience < 0:
            raise ModelError(f"{self.connection.site.shown} has lost its model: restore it from a copy")
        time.sleep(PAUSE_SECONDS)
        return False

    def count(self, condition: str) -> int:
        """Return how many rows meet a condition."""
        (row,) = self.query(condition, ["count(*)"])
        return int(row["count(*)"])

    def by_keys(self, keys: Iterable[str], fields: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return rows by their keys; those that are not there are left out."""
        found: dict[str, dict[str, Any]] = {}
        for part in _parts(list(keys), MAX_KEYS):
            found.update(
                (row["key"], row) for row in self.query(f"key in {json.dumps(part)}", ["key", *fields])
            )
        return found

    def abouts(self, keys: Sequence[str]) -> dict[str, Any]:
        """Return what is known about documents beside their texts, by key."""
        found: dict[str, Any] = {}
        for part in _parts(keys, MAX_ABOUTS):
            found.update((key, row["about"]) for key, row in self.by_keys(part, ["about"]).items())
        return found

    def by_seqs(self, seqs: Iterable[int], fields: Sequence[str], *, condition: str) -> list[dict[str, Any]]:
        """Return the rows of documents by seq; those that are not there are left out."""
        found: list[dict[str, Any]] = []
        for part in _parts([int(seq) for seq in seqs], MAX_KEYS):
            found += self.query(f"{condition} and seq in {part}", ["key", "seq", *fields])
        return found

    def windows(
        self, condition: str, fields: Sequence[str], *, after: int, before: int, size: int | None = None
    ) -> Iterator[list[dict[str, Any]]]:
        """Yield the rows of documents by seq, from between `after` and `before`, about `size` at a time."""
        size = min(size or WINDOW, WINDOW)
        while after < before - 1:
            end = min(after + size, before - 1)
            found = self.query(f"{condition} and seq > {after} and seq <= {end}", ["key", "seq", *fields])
            yield sorted(found, key=lambda row: int(row["seq"]))
            after = end
            if len(found) < size // 2:  # many have gone, or a filter keeps them back
                size = min(2 * size, WINDOW)

    def texts(self, keys: Sequence[str]) -> dict[str, str]:
        """Return the texts of pieces, by key."""
        found: dict[str, str] = {}
        for part in _parts(keys, MAX_PIECES):
            rows = self.query(f"kind == {PIECE} and key in {json.dumps(part)}", ["key", "text"])
            found.update((row["key"], row["text"]) for row in rows)
        return found

    def field_names(self) -> list[str]:
        """Return names that the documents' metadata have had, in order."""
        return sorted(row["text"] for row in self.query(f"kind == {FIELD}", ["text"]))

    def documents(self, listed: Sequence[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], Document]]:
        """Yield rows listed with `key` and `size` in full, and their documents; the gone are left out."""
        for part in _by_size(listed):
            rows = self.by_keys(
                (row["key"] for row in part), ["seq", "kind", "pieces", "about", "text", "code"]
            )
            pieces: dict[str, str] = {}
            if any(row["pieces"] for row in rows.values()):
                pieces = self.texts([key for row in rows.values() for key in piece_keys(row)])
            for row in (rows[one["key"]] for one in part if one["key"] in rows):
                try:
                    yield row, to_document(row, pieces)
                except KeyError as error:
                    raise CollectionError(
                        f"{self.connection.site.shown}: a document was replaced while it was read, "
                        f"or is damaged: try again ({error})"
                    ) from error

    def code_rows(self, rows: Iterable[dict[str, Any]]) -> CodeRows:
        """Return the codes of rows by seq."""
        ordered = sorted(rows, key=lambda row: int(row["seq"]))
        seqs = np.array([row["seq"] for row in ordered], dtype=np.int64)
        codes = np.frombuffer(b"".join(code_of(row) for row in ordered), dtype=np.uint8)
        return CodeRows(seqs, codes.reshape(len(ordered), self.facts.width))

    # Writing

    def write(self, rows: Sequence[Row]) -> None:
        """Write rows in their order, each in the place of one of the same key."""
        part: list[Row] = []
        size = 0
        for row in rows:
            part.append(row)
            size += row.size
            if size > MAX_BYTES or len(part) >= MAX_ROWS:
                self._upsert(part)
                part, size = [], 0
        if part:
            self._upsert(part)

    def _upsert(self, rows: Sequence[Row]) -> None:
        columns = to_columns_of(rows, width=self.facts.width)
        self.connection.upsert(self.facts.documents, columns, TYPES)

    def delete(self, keys: Sequence[str]) -> None:
        """Delete rows by their keys."""
        for part in _parts(keys, MAX_KEYS):
            self.connection.delete(self.facts.documents, part)


def code_of(row: dict[str, Any]) -> bytes:
    """Return the code of a row as Milvus gives it."""
    return bytes(row["code"][0])


def _parts(values: Sequence[Any], limit: int) -> Iterator[list[Any]]:
    for start in range(0, len(values), limit):
        yield list(values[start : start + limit])


def _by_size(listed: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    part: list[dict[str, Any]] = []
    size = 0
    for row in listed:
        part.append(row)
        size += row["size"]
        if size > MAX_BYTES or len(part) >= MAX_KEYS:
            yield part
            part, size = [], 0
    if part:
        yield part
