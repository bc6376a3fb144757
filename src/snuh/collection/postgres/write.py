"""What can be done within one write of a collection in PostgreSQL."""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from snuh.collection import backend
from snuh.collection.backend import Columns, NewDocument, by_id, to_columns
from snuh.collection.model_files import ModelFiles, files_of
from snuh.collection.postgres.connection import Connection, Connections
from snuh.collection.postgres.schema import FORMAT, TABLES, codes_table, create_codes
from snuh.collection.postgres.sql import exact_json, to_bits
from snuh.collection.results import Added
from snuh.corpus import Document
from snuh.corpus.document import quote
from snuh.encoding import encode_documents
from snuh.errors import CollectionError, InputError, SnuhError
from snuh.model import Model

ESCAPED_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")  # as JSON writes it
PERHAPS_INEXACT = re.compile(r"[0-9](?:[.eE]|[0-9]{18})")  # a float, or a whole number of over 64 bits
MAX_ID = 2_000  # bytes: more do not fit into an index


@dataclass(frozen=True, slots=True)
class State(backend.State):
    """What a collection is at one moment."""

    codes: str  # the table
    write: int  # number of the last write
    rehash: str | None  # token of the rehash under way, or of one that was interrupted


class PgWrite:
    """Writes with one connection, whose transaction holds the lock of all writers."""

    def __init__(self, connection: Connection, state: State) -> None:
        self._connection, self.state = connection, state
        self._next_seq = state.next_seq

    @property
    def number(self) -> int:
        """The number that this write will have."""
        return self.state.write + 1

    def put(self, new: Sequence[NewDocument]) -> Added:
        """Insert documents, or replace those with the same id where they are."""
        wanted = by_id(new, bits=self.state.bits)
        columns = {doc_id: _columns(one.document) for doc_id, one in wanted.items()}
        known = self._seqs_of(list(wanted))
        if known:
            self.delete(known.values())
        seqs = {}
        for doc_id in wanted:
            seqs[doc_id] = known.get(doc_id, self._next_seq)
            self._next_seq += doc_id not in known
        self._copy_documents(wanted, columns, seqs)
        codes = [(seqs[doc_id], one.code) for doc_id, one in wanted.items()]
        self.copy_codes(self.state.codes, codes)
        names = sorted({name for one in wanted.values() for name in one.document.metadata})
        if names:
            self._connection.execute(
                "INSERT INTO fields SELECT unnest(%s::text[]) ON CONFLICT DO NOTHING", (names,)
            )
        without = sum(one.code is None for one in wanted.values())
        return Added(len(wanted) - len(known), len(known), without)

    def _seqs_of(self, ids: list[str]) -> dict[str, int]:
        rows = self._connection.execute("SELECT id, seq FROM documents WHERE id = ANY(%s::text[])", (ids,))
        return dict(rows.fetchall())

    def _copy_documents(
        self, by_id: dict[str, NewDocument], columns: dict[str, Columns], seqs: dict[str, int]
    ) -> None:
        statement = "COPY documents (seq, id, split, labels, metadata, fields, text, write) FROM STDIN"
        with self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            for doc_id, row in columns.items():
                fields = row.metadata
                if PERHAPS_INEXACT.search(fields):
                    fields = exact_json(by_id[doc_id].document.metadata)
                copy.write_row(
                    (
                        seqs[doc_id],
                        row.id,
                        row.split,
                        row.labels,
                        row.metadata,
                        fields,
                        row.text,
                        self.number,
                    )
                )

    def copy_codes(self, table: str, codes: Iterable[tuple[int, bytes | None]]) -> None:
        """Append codes to a table; None for none."""
        with self._connection.cursor() as cursor, cursor.copy(f"COPY {table} (seq, code) FROM STDIN") as copy:
            for seq, code in codes:
                if code is not None:
                    copy.write_row((seq, to_bits(code)))

    def delete(self, seqs: Iterable[int]) -> None:
        """Delete documents by seq."""
        gone = [int(seq) for seq in seqs]
        for table in ("documents", self.state.codes):
            self._connection.execute(f"DELETE FROM {table} WHERE seq = ANY(%s::bigint[])", (gone,))

    # Codes of another model, beside those in use

    def start_next(self, table: str, bits: int, files: ModelFiles, token: str) -> None:
        """Make an empty table for codes of another model, and note that a rehash is under way."""
        left = self._connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace "
            "AND relkind = 'r' AND relname ~ '^codes_[0-9]+$' AND relname <> %s",
            (self.state.codes,),
        )
        for (name,) in left.fetchall():  # by a rehash that was stopped
            self._connection.execute(f"DROP TABLE {name}")
        self._connection.execute(create_codes(table, bits))
        keep_model(self._connection, files)
        self._connection.execute("UPDATE state SET rehash = %s", (token,))

    def drop_next(self, table: str, seqs: Sequence[int]) -> None:
        """Forget what these documents' codes were to be."""
        self._connection.execute(f"DELETE FROM {table} WHERE seq = ANY(%s::bigint[])", (list(seqs),))

    def switch(self, table: str, *, model: str, bits: int) -> None:
        """Let another table be the one of the codes."""
        self._connection.execute(
            f"DELETE FROM {table} c WHERE NOT EXISTS (SELECT 1 FROM documents d WHERE d.seq = c.seq)"
        )
        self._connection.execute(
            "UPDATE state SET model = %s, bits = %s, codes = %s, rehash = NULL", (model, bits, table)
        )
        self._connection.execute("DELETE FROM models WHERE fingerprint <> %s", (model,))
        self._connection.execute("DELETE FROM fast")

    def finish(self) -> None:
        """Number this write."""
        self._connection.execute(
            "UPDATE state SET write = %s, token = %s, next_seq = %s",
            (self.number, secrets.token_hex(8), self._next_seq),
        )


def make_tables(connection: Connection, files: ModelFiles, bits: int) -> State:
    """Make the tables of an empty collection, and return its state."""
    state = State(files.fingerprint, bits, secrets.token_hex(8), 1, codes_table(0), 0, None)
    for statement in (*TABLES.split(";")[:-1], create_codes(state.codes, bits)):
        connection.execute(statement)
    keep_model(connection, files)
    connection.execute(
        "INSERT INTO state (one, format, model, bits, codes, write, token, next_seq) "
        "VALUES (1, %s, %s, %s, %s, %s, %s, %s)",
        (FORMAT, state.model, bits, state.codes, state.write, state.token, state.next_seq),
    )
    return state


def keep_model(connection: Connection, files: ModelFiles) -> None:
    """Store the files of a model."""
    for name, content in files.content.items():
        connection.execute(
            "INSERT INTO models VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
            (files.fingerprint, name, content),
        )


def _columns(document: Document) -> Columns:
    row = to_columns(document)
    if "\0" in f"{row.id}{row.split}{row.text}" or ESCAPED_NUL.search(f"{row.labels} {row.metadata}"):
        raise InputError(
            f"the document {quote(document.id)} cannot be stored: "
            "it holds the character U+0000, which PostgreSQL does not take"
        )
    if len(row.id.encode()) > MAX_ID:
        raise InputError(
            f"the document {quote(document.id)} cannot be stored: its id has {len(row.id.encode()):,} bytes, "
            f"PostgreSQL takes up to {MAX_ID:,}"
        )
    return row


# Codes of another model for all documents, in a table beside the one in use.

if TYPE_CHECKING:
    from snuh.collection.postgres.backend import PgBackend

logger = logging.getLogger(__name__)

BATCH_DOCUMENTS = 5_000


def rehash(
    backend: PgBackend, connections: Connections, model: Model, *, progress: Callable[[float], None] | None
) -> None:
    """Encode every document with `model`, then let the table of these codes be the one in use.

    Whoever still reads the old table is in a transaction that sees the old state; it is dropped afterwards.
    """
    files, token = files_of(model), secrets.token_hex(8)
    with backend.writing() as write:
        start, end, table = write.number, write.state.next_seq, codes_table(write.number)
        write.start_next(table, model.bits, files, token)
    last = 0
    while batch := backend.documents(after=last, limit=BATCH_DOCUMENTS):
        with backend.writing() as write:
            _check_turn(write, token, name=backend.name)
            write.copy_codes(table, _encoded(batch, model))
        last = batch[-1][0]
        if progress is not None:
            progress(min(1.0, last / max(1, end - 1)))
    with backend.writing() as write:
        _check_turn(write, token, name=backend.name)
        # What others wrote meanwhile is encoded here, where nobody else can write.
        changed = [seq for seq in backend.changed_since(start).tolist() if seq <= last]
        write.drop_next(table, changed)
        for first in range(0, len(changed), BATCH_DOCUMENTS):
            documents = backend.documents_of(changed[first : first + BATCH_DOCUMENTS])
            write.copy_codes(table, _encoded(list(documents.items()), model))
        while batch := backend.documents(after=last, limit=BATCH_DOCUMENTS):
            write.copy_codes(table, _encoded(batch, model))
            last = batch[-1][0]
        write.switch(table, model=files.fingerprint, bits=model.bits)
        old = write.state.codes
    try:
        with connections.writing() as connection:
            connection.execute(f"DROP TABLE IF EXISTS {old}")
    except SnuhError as error:  # it only takes space, until the next rehash
        logger.warning("the table of the old codes could not be dropped: %s", error)


def _encoded(batch: Sequence[tuple[int, Document]], model: Model) -> Iterator[tuple[int, bytes | None]]:
    seqs = iter([seq for seq, _ in batch])
    for part in encode_documents(model, [document for _, document in batch]):
        for code in part.packed():
            yield next(seqs), code


def _check_turn(write: PgWrite, token: str, *, name: str) -> None:
    if write.state.rehash != token:
        raise CollectionError(f"{name}: another rehash of it has started: this one stops")


# Whether the documents have their codes, as far as a few of them tell.

LOOKED_AT = 10  # documents from all over: opening takes no longer where there are millions


def check_has_codes(connection: Connection, state: State, model: Model, *, name: str) -> None:
    """Raise CollectionError where one of a few documents has lost its code.

    One without any word that the model knows never had one.
    """
    places = np.linspace(1, max(1, state.next_seq - 1), LOOKED_AT).astype(int).tolist()
    # Asked for one by one, by their keys: joined, the planner might read both tables as a whole.
    rows = connection.execute(
        "SELECT DISTINCT d.seq, d.id, d.text FROM unnest(%s::bigint[]) AS wanted (seq) CROSS JOIN LATERAL "
        "(SELECT seq, id, text FROM documents WHERE seq >= wanted.seq ORDER BY seq LIMIT 1) d "
        f"WHERE (SELECT 1 FROM {state.codes} c WHERE c.seq = d.seq) IS NULL ORDER BY d.seq",
        (places,),
    ).fetchall()
    for batch in encode_documents(model, [Document(doc_id, text) for _, doc_id, text in rows]):
        for document, code in zip(batch.documents, batch.packed(), strict=True):
            if code is not None:
                raise CollectionError(
                    f"{name}: it has lost codes, such as that of the document {quote(document.id)}: "
                    "restore the tables from a copy"
                )
