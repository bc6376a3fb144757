"""Writes to a collection in PostgreSQL: creation, documents and rehashing."""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from snuh.collection.backend import Columns, NewDocument, State, by_id, to_columns
from snuh.collection.model_files import ModelFiles, files_of
from snuh.collection.postgres.connection import PgConnection, PgPool
from snuh.collection.postgres.schema import (
    FORMAT,
    codes_table,
    create_index_tables,
    create_statements,
    index_tables,
)
from snuh.collection.postgres.sql import exact_json, to_bits
from snuh.collection.postgres.words import Texts, WordWriter
from snuh.collection.ranking import TermReader
from snuh.collection.results import Added
from snuh.corpus import Document
from snuh.encoding import encode_documents
from snuh.errors import CollectionError, InputError, SnuhError
from snuh.model import Model
from snuh.text import quote

if TYPE_CHECKING:
    from snuh.collection.postgres.backend import PgBackend

logger = logging.getLogger(__name__)

ESCAPED_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")  # in JSON
MAYBE_INEXACT = re.compile(r"[0-9](?:[.eE]|[0-9]{18})")  # a float, or an integer of more than 64 bits
MAX_ID_BYTES = 2_000  # of an index entry
BATCH_DOCUMENTS = 5_000  # of a rehash
CHECKED_DOCUMENTS = 10  # by `check_codes_present`, whatever the size of the collection


@dataclass(frozen=True, slots=True)
class PgState(State):
    """A collection in PostgreSQL at one point in time."""

    codes: str  # name of the table
    write: int  # number of the last write
    rehash: str | None  # token of a running or interrupted rehash


class PgWrite:
    """An open write transaction, which holds the lock on the state row."""

    def __init__(self, connection: PgConnection, state: PgState, words: WordWriter | None) -> None:
        self._connection, self.state, self._words = connection, state, words
        self._next_seq = state.next_seq

    @property
    def number(self) -> int:
        """The number of this write."""
        return self.state.write + 1

    def put(self, new: Sequence[NewDocument]) -> Added:
        """Insert documents, or replace those with the same id."""
        rows = by_id(new, bits=self.state.bits)
        columns = {doc_id: _columns(row.document) for doc_id, row in rows.items()}
        replaced = self._seqs_of(list(rows))
        if replaced:
            self.delete(replaced.values())
        seqs = {}
        for doc_id in rows:
            seqs[doc_id] = replaced.get(doc_id, self._next_seq)
            self._next_seq += doc_id not in replaced
        self._copy_documents(rows, columns, seqs)
        self.copy_codes(self.state.codes, [(seqs[doc_id], row.code) for doc_id, row in rows.items()])
        if self._words is not None:
            self._words.add([(seqs[doc_id], row.document.text, row.code) for doc_id, row in rows.items()])
        fields = sorted({name for row in rows.values() for name in row.document.metadata})
        if fields:
            self._connection.execute(
                "INSERT INTO fields SELECT unnest(%s::text[]) ON CONFLICT DO NOTHING", (fields,)
            )
        return Added(
            inserted=len(rows) - len(replaced),
            replaced=len(replaced),
            without_code=sum(row.code is None for row in rows.values()),
        )

    def _seqs_of(self, ids: list[str]) -> dict[str, int]:
        rows = self._connection.execute("SELECT id, seq FROM documents WHERE id = ANY(%s::text[])", (ids,))
        return dict(rows.fetchall())

    def _copy_documents(
        self, rows: dict[str, NewDocument], columns: dict[str, Columns], seqs: dict[str, int]
    ) -> None:
        statement = "COPY documents (seq, id, split, labels, metadata, fields, text, write) FROM STDIN"
        with self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            for doc_id, cells in columns.items():
                fields = cells.metadata
                if MAYBE_INEXACT.search(fields):
                    fields = exact_json(rows[doc_id].document.metadata)
                copy.write_row(
                    (
                        seqs[doc_id],
                        cells.id,
                        cells.split,
                        cells.labels,
                        cells.metadata,
                        fields,
                        cells.text,
                        self.number,
                    )
                )

    def copy_codes(self, table: str, codes: Iterable[tuple[int, bytes | None]]) -> None:
        """Append codes to a table, leaving out documents without one."""
        with self._connection.cursor() as cursor, cursor.copy(f"COPY {table} (seq, code) FROM STDIN") as copy:
            for seq, code in codes:
                if code is not None:
                    copy.write_row((seq, to_bits(code)))

    def delete(self, seqs: Iterable[int]) -> None:
        """Delete documents by seq."""
        rows = [int(seq) for seq in seqs]
        for table in ("documents", self.state.codes):
            self._connection.execute(f"DELETE FROM {table} WHERE seq = ANY(%s::bigint[])", (rows,))
        if self._words is not None:
            self._words.remove(rows)

    # Rehashing: the codes and words of the next model are collected in tables of their own

    def start_rehash(self, table: str, model: Model, files: ModelFiles, token: str) -> None:
        """Create empty tables for the codes and words of another model, and store the model."""
        orphans = self._connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace "
            "AND relkind = 'r' AND relname ~ '^(codes|postings|rows)_[0-9]+$' AND relname <> ALL(%s)",
            (list(index_tables(self.state.codes)),),
        )
        for (name,) in orphans.fetchall():  # of interrupted rehashes
            self._connection.execute(f"DROP TABLE {name}")
        for statement in create_index_tables(table, model.bits, words=self._words is not None):
            self._connection.execute(statement)
        _save_model(self._connection, files)
        self._connection.execute("UPDATE state SET rehash = %s", (token,))

    def add_rehashed(self, table: str, documents: Texts, words: WordWriter | None) -> None:
        """Add documents with their new codes."""
        self.copy_codes(table, [(seq, code) for seq, _, code in documents])
        if words is not None:
            words.add(documents)

    def remove_rehashed(self, table: str, changed: list[int], words: WordWriter | None) -> None:
        """Remove documents that were replaced or deleted after they were added."""
        self._connection.execute(
            f"DELETE FROM {table} c WHERE seq = ANY(%s::bigint[]) "
            "OR NOT EXISTS (SELECT 1 FROM documents d WHERE d.seq = c.seq)",
            (changed,),
        )
        if words is not None:
            words.remove([*changed, *words.deleted()])

    def words_in(self, table: str, model: Model, reader: TermReader | None) -> WordWriter | None:
        """Return the writer of the index of words that belongs to a code table; None without a reader."""
        return None if reader is None else WordWriter(self._connection, table, model.bits, reader)

    def switch(self, table: str, *, model: str, bits: int) -> None:
        """Make other tables those with the current codes and words."""
        self._connection.execute(
            "UPDATE state SET model = %s, bits = %s, codes = %s, rehash = NULL", (model, bits, table)
        )
        self._connection.execute("DELETE FROM models WHERE fingerprint <> %s", (model,))
        self._connection.execute("DELETE FROM fast")

    def finish(self) -> None:
        """Update the state."""
        self._connection.execute(
            "UPDATE state SET write = %s, token = %s, next_seq = %s",
            (self.number, secrets.token_hex(8), self._next_seq),
        )


def term_reader(model: Model) -> TermReader:
    """Return what turns texts into terms for the index of words."""
    if model.features is None:
        raise CollectionError("this collection has a model without a vocabulary: restore it from a copy")
    return TermReader(model.features.analyzer)


def create_tables(connection: PgConnection, files: ModelFiles, bits: int, *, words: bool) -> PgState:
    """Create the tables of an empty collection and return its state."""
    state = PgState(files.fingerprint, bits, secrets.token_hex(8), 1, codes_table(0), 0, None)
    for statement in (*create_statements(), *create_index_tables(state.codes, bits, words=words)):
        connection.execute(statement)
    _save_model(connection, files)
    connection.execute(
        "INSERT INTO state (one, format, model, bits, codes, write, token, next_seq) "
        "VALUES (1, %s, %s, %s, %s, %s, %s, %s)",
        (FORMAT, state.model, bits, state.codes, state.write, state.token, state.next_seq),
    )
    return state


def _save_model(connection: PgConnection, files: ModelFiles) -> None:
    for name, content in files.content.items():
        connection.execute(
            "INSERT INTO models VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
            (files.fingerprint, name, content),
        )


def _columns(document: Document) -> Columns:
    """Return a document as columns; InputError if PostgreSQL cannot store them."""
    row = to_columns(document)
    if "\0" in f"{row.id}{row.split}{row.text}" or ESCAPED_NUL.search(f"{row.labels} {row.metadata}"):
        raise InputError(
            f"the document {quote(document.id)} cannot be stored: "
            "it contains the character U+0000, which PostgreSQL does not support"
        )
    if len(row.id.encode()) > MAX_ID_BYTES:
        raise InputError(
            f"the document {quote(document.id)} cannot be stored: its id has {len(row.id.encode()):,} bytes, "
            f"PostgreSQL allows up to {MAX_ID_BYTES:,}"
        )
    return row


def rehash(
    backend: PgBackend, pool: PgPool, model: Model, *, progress: Callable[[float], None] | None
) -> None:
    """Encode every document with `model` into new tables, then switch to them.

    Transactions that still read the old tables see the old state; they are dropped after them.
    """
    files, token = files_of(model), secrets.token_hex(8)
    with backend.writing() as write:
        start, end, table = write.number, write.state.next_seq, codes_table(write.number)
        write.start_rehash(table, model, files, token)
    reader = term_reader(model) if backend.has_words else None
    last = 0
    while batch := backend.documents(after=last, limit=BATCH_DOCUMENTS):
        with _continuing(backend, token) as write:
            write.add_rehashed(table, _encoded(batch, model), write.words_in(table, model, reader))
        last = batch[-1][0]
        if progress is not None:
            progress(min(1.0, last / max(1, end - 1)))
    with _continuing(backend, token) as write:
        # Catch up with concurrent writes while holding the write lock.
        words = write.words_in(table, model, reader)
        changed = [seq for seq in backend.changed_since(start).tolist() if seq <= last]
        write.remove_rehashed(table, changed, words)
        for first in range(0, len(changed), BATCH_DOCUMENTS):
            documents = backend.documents_of(changed[first : first + BATCH_DOCUMENTS])
            write.add_rehashed(table, _encoded(list(documents.items()), model), words)
        while batch := backend.documents(after=last, limit=BATCH_DOCUMENTS):
            write.add_rehashed(table, _encoded(batch, model), words)
            last = batch[-1][0]
        write.switch(table, model=files.fingerprint, bits=model.bits)
        old = write.state.codes
    try:
        with pool.writing() as connection:
            connection.execute(f"DROP TABLE IF EXISTS {', '.join(index_tables(old))}")
    except SnuhError as error:  # it only wastes space until the next rehash
        logger.warning("the tables of the old codes could not be dropped: %s", error)


def _encoded(batch: Sequence[tuple[int, Document]], model: Model) -> Texts:
    codes = [
        code
        for encoded in encode_documents(model, [document for _, document in batch])
        for code in encoded.packed()
    ]
    return [(seq, document.text, code) for (seq, document), code in zip(batch, codes, strict=True)]


@contextmanager
def _continuing(backend: PgBackend, token: str) -> Iterator[PgWrite]:
    """Begin a write of a rehash; CollectionError if another rehash has started."""
    with backend.writing() as write:
        if write.state.rehash != token:
            raise CollectionError(f"{backend.name}: another rehash has started: this one stops")
        yield write


def check_codes_present(connection: PgConnection, state: PgState, model: Model, *, name: str) -> None:
    """Raise CollectionError if one of a few evenly spaced documents has lost its code.

    A document without a word that the model knows has none.
    """
    seqs = np.linspace(1, max(1, state.next_seq - 1), CHECKED_DOCUMENTS).astype(int).tolist()
    # A lateral join uses the keys; with a plain join the planner might read both tables in full.
    rows = connection.execute(
        "SELECT DISTINCT d.seq, d.id, d.text FROM unnest(%s::bigint[]) AS sampled (seq) CROSS JOIN LATERAL "
        "(SELECT seq, id, text FROM documents WHERE seq >= sampled.seq ORDER BY seq LIMIT 1) d "
        f"WHERE (SELECT 1 FROM {state.codes} c WHERE c.seq = d.seq) IS NULL ORDER BY d.seq",
        (seqs,),
    ).fetchall()
    for batch in encode_documents(model, [Document(doc_id, text) for _, doc_id, text in rows]):
        for document, code in zip(batch.documents, batch.packed(), strict=True):
            if code is not None:
                raise CollectionError(
                    f"{name}: codes are missing, such as that of the document {quote(document.id)}: "
                    "restore the tables from a copy"
                )
