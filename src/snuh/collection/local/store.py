"""The SQLite store of a local collection: documents, codes and a log of changes, the source of truth."""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from snuh.collection.backend import NewDocument, State, by_id, from_columns, is_storable, to_columns
from snuh.collection.local.sqlite import (
    NEXT_CODES,
    STORE_VERSION,
    TABLES,
    DamagedRowError,
    StoreConnection,
    translate_errors,
)
from snuh.collection.results import Added, CodeRows
from snuh.corpus import Document
from snuh.filters import Filter, SqlColumns, to_sql
from snuh.search import excerpt

STORE_FILE = "store.sqlite"
MAX_REMEMBERED_WRITES = 100_000
MAX_REMEMBERED_CHANGES = 1_000_000
BATCH_ROWS = 50_000
MAX_READ_CHARACTERS = 16_000_000  # of the texts that are in memory at a time
MAX_PARAMETERS = 1_000  # of one statement
MAX_SEQ = 2**63 - 1
STATE = "model, bits, token, next_seq, write, rehash, documents, codes, checksum"  # columns
_STATE_MARKS = ", ".join("?" * len(STATE.split(", ")))
COLUMNS = SqlColumns(id="d.id", split="d.split", labels="d.labels", metadata="d.metadata")


@dataclass(frozen=True, slots=True)
class LocalState(State):
    """A local collection at one point in time."""

    write: int  # number of the last write
    rehash: str | None  # token of a running or interrupted rehash
    documents: int
    codes: int


class Store:
    """An open store."""

    def __init__(self, folder: Path, *, timeout: float = 30.0) -> None:
        self.path = folder / STORE_FILE
        self._connection = StoreConnection(self.path, timeout=timeout)

    @classmethod
    def create(cls, folder: Path, *, model: str, bits: int) -> None:
        """Create an empty store."""
        with (
            translate_errors(folder),
            closing(sqlite3.connect(folder / STORE_FILE, isolation_level=None)) as connection,
        ):
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(f"BEGIN; {TABLES} PRAGMA user_version = {STORE_VERSION}; COMMIT;")
            token = secrets.token_hex(8)
            state = LocalState(model, bits, token, 1, write=0, rehash=None, documents=0, codes=0)
            connection.execute(
                f"INSERT INTO state (one, {STATE}) VALUES (1, {_STATE_MARKS})", _state_row(state)
            )
            connection.execute("INSERT INTO writes VALUES (0, ?)", (token,))

    @property
    def is_writable(self) -> bool:
        """Whether this process may write to the folder."""
        return self._connection.is_writable

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    # Transactions

    @contextmanager
    def reading(self) -> Iterator[LocalState]:
        """Begin a read transaction; may be nested."""
        with self._connection.reading() as connection:
            yield _state(connection)

    @contextmanager
    def writing(self) -> Iterator[LocalWrite]:
        """Begin a write transaction, committed when the block ends."""
        with self._connection.writing() as connection:
            write = LocalWrite(connection, _state(connection))
            yield write
            write.finish()

    def state(self) -> LocalState:
        """Return the current state."""
        with self.reading() as state:
            return state

    # Reading

    def count(self) -> int:
        """Return the number of documents."""
        return self.state().documents

    def code_rows(self, *, after: int = 0) -> CodeRows:
        """Return the codes of all documents with seq > `after`."""
        return self._code_rows("SELECT seq, code, checksum FROM codes WHERE seq > ? ORDER BY seq", (after,))

    def remembers(self, write: int, token: str) -> bool:
        """Tell whether a write belongs to this store and all changes after it are still logged."""
        query = "SELECT EXISTS (SELECT 1 FROM writes WHERE write = ? AND token = ?)"
        return bool(self._value(query, (write, token)))

    def token_of(self, write: int) -> str:
        """Return the token of a write; empty if it is no longer logged."""
        with self._connection.reading() as connection:
            row = connection.execute("SELECT token FROM writes WHERE write = ?", (write,)).fetchone()
        return "" if row is None else str(row[0])

    def changed_since(self, write: int) -> NDArray[np.int64]:
        """Return the seqs of documents replaced or deleted after a write, ascending."""
        with self._connection.reading() as connection:
            rows = connection.execute(
                "SELECT DISTINCT seq FROM changes WHERE write > ? ORDER BY seq", (write,)
            )
            return _integers(rows)

    def code_rows_of(self, seqs: NDArray[np.int64]) -> CodeRows:
        """Return the codes of these documents, ordered by seq."""
        query = (
            "SELECT seq, code, checksum FROM codes WHERE seq IN (SELECT value FROM json_each(?)) ORDER BY seq"
        )
        return self._code_rows(query, (json.dumps(seqs.tolist()),))

    def documents_of(self, seqs: Iterable[int], *, characters: int | None = None) -> dict[int, Document]:
        """Return documents by seq; longer texts are cut to this many characters."""
        wanted = json.dumps([int(seq) for seq in seqs])
        query = f"{_DOCUMENTS} WHERE d.seq IN (SELECT value FROM json_each(?))"
        with self._connection.reading() as connection:
            rows = connection.execute(query, (wanted,))
            return {row[0]: excerpt(_document(row), characters) for row in rows}

    def documents(
        self, *, after: int = 0, before: int | None = None, limit: int, where: Filter | None = None
    ) -> list[tuple[int, Document]]:
        """Return up to `limit` (seq, document) pairs with `after` < seq < `before`, ordered by seq.

        Fewer, but at least one if there is any, if their texts are long.
        """
        condition, values = _condition(where)
        query = f"{_DOCUMENTS} WHERE d.seq > ? AND d.seq < ? AND ({condition}) ORDER BY d.seq LIMIT ?"
        end = MAX_SEQ if before is None else before
        with self._connection.reading() as connection:
            rows = connection.execute(query, (after, end, *values, limit))
            documents, length = [], 0
            for row in rows:
                documents.append((row[0], _document(row)))
                length += len(documents[-1][1].text)
                if length >= MAX_READ_CHARACTERS:
                    break
            return documents

    def seqs_where(self, where: Filter, *, among: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
        """Return the seqs of the documents (of all, or among these) that match a filter, ascending."""
        condition, values = _condition(where)
        query = f"SELECT d.seq FROM documents d WHERE {condition} ORDER BY d.seq"
        if among is not None:
            chosen = "d.seq IN (SELECT value FROM json_each(?))"
            query = f"SELECT d.seq FROM documents d WHERE {chosen} AND ({condition}) ORDER BY d.seq"
            values = [json.dumps(among.tolist()), *values]
        with self._connection.reading() as connection:
            return _integers(connection.execute(query, values))

    def seqs_of(self, ids: Sequence[str]) -> dict[str, int]:
        """Return the seqs of documents by id; ids that do not exist are left out."""
        with self._connection.reading() as connection:
            return _seqs_of(connection, [doc_id for doc_id in ids if is_storable(doc_id)])

    def check(self) -> list[str]:
        """Return what is wrong with the store: its structure, its rows, and how many there are."""
        with self._connection.reading() as connection:
            structure = [row[0] for row in connection.execute("PRAGMA integrity_check(10)")]
            if structure != ["ok"]:
                return [f"the store is damaged: {' '.join(message.split())}" for message in structure]
            state, problems = _state(connection), []
            rows = connection.execute(f"{_DOCUMENTS} ORDER BY d.seq")
            documents = 0
            for seq, *columns, checksum in rows:
                documents += 1
                if not _is_intact(seq, columns, checksum):
                    problems.append(f"the document {columns[0]!r} has changed on disk")
            codes = 0
            for seq, code, checksum in connection.execute("SELECT seq, code, checksum FROM codes"):
                codes += 1
                if type(code) is not bytes or len(code) * 8 != state.bits or crc32(code, seq) != checksum:
                    problems.append(f"the code of row {seq} has changed on disk")
            for name, written, found in (
                ("documents", state.documents, documents),
                ("codes", state.codes, codes),
            ):
                if written != found:
                    problems.append(f"{written:,} {name} were written, there are {found:,}")
        return problems

    def fields(self, *, limit: int) -> list[str]:
        """Return the metadata fields of all documents so far, sorted."""
        query = "SELECT name FROM fields ORDER BY name LIMIT ?"
        with self._connection.reading() as connection:
            return [name for (name,) in connection.execute(query, (limit,))]

    def has_field(self, name: str) -> bool:
        """Tell whether any document so far has had this metadata field."""
        return bool(self._value("SELECT EXISTS (SELECT 1 FROM fields WHERE name = ?)", (name,)))

    def ids_near(self, doc_id: str, *, limit: int) -> list[str]:
        """Return up to `limit` ids on each side of `doc_id` in sorted order, for suggestions."""
        if not is_storable(doc_id):
            return []
        queries = (
            "SELECT id FROM documents WHERE id >= ? ORDER BY id LIMIT ?",
            "SELECT id FROM documents WHERE id < ? ORDER BY id DESC LIMIT ?",
        )
        with self._connection.reading() as connection:
            rows = [row for query in queries for row in connection.execute(query, (doc_id, limit))]
        return [near for (near,) in rows if isinstance(near, str)]

    def _value(self, query: str, values: Sequence[Any] = ()) -> Any:
        with self._connection.reading() as connection:
            return connection.execute(query, values).fetchone()[0]

    def _code_rows(self, query: str, values: Sequence[Any]) -> CodeRows:
        with self._connection.reading() as connection:
            width = _state(connection).bits // 8
            cursor = connection.execute(query, values)
            seqs, codes = [np.zeros(0, dtype=np.int64)], [np.zeros((0, width), dtype=np.uint8)]
            while rows := cursor.fetchmany(BATCH_ROWS):
                seqs.append(np.fromiter((row[0] for row in rows), dtype=np.int64, count=len(rows)))
                if any(type(code) is not bytes or crc32(code, seq) != check for seq, code, check in rows):
                    raise DamagedRowError("a code has changed on disk")
                joined = b"".join([row[1] for row in rows])
                if len(joined) != len(rows) * width:
                    raise DamagedRowError("codes of the wrong length")
                codes.append(np.frombuffer(joined, dtype=np.uint8).reshape(-1, width))
            return CodeRows(np.concatenate(seqs), np.concatenate(codes))


class LocalWrite:
    """An open write transaction."""

    def __init__(self, connection: sqlite3.Connection, state: LocalState) -> None:
        self._connection, self.state = connection, state
        self._next_seq = state.next_seq
        self._documents, self._codes = state.documents, state.codes
        self._new_state: dict[str, Any] = {}
        self._changed: set[int] = set()

    @property
    def number(self) -> int:
        """The number of this write."""
        return self.state.write + 1

    def put(self, new: Sequence[NewDocument]) -> Added:
        """Insert documents, or replace those with the same id."""
        rows = by_id(new, bits=self.state.bits)
        columns = {doc_id: to_columns(row.document) for doc_id, row in rows.items()}
        replaced = _seqs_of(self._connection, list(rows))
        documents, codes, dropped_codes = [], [], []
        for doc_id, row in rows.items():
            seq = replaced.get(doc_id)
            if seq is None:
                seq, self._next_seq = self._next_seq, self._next_seq + 1
            elif row.code is None:
                dropped_codes.append((seq,))
            documents.append((seq, *columns[doc_id], _checksum(seq, columns[doc_id])))
            if row.code is not None:
                codes.append((seq, row.code, crc32(row.code, seq)))
        codes_before = self._count_codes(replaced.values())
        self._connection.executemany(
            "INSERT OR REPLACE INTO documents VALUES (?, ?, ?, ?, ?, ?, ?)", documents
        )
        self._connection.executemany("INSERT OR REPLACE INTO codes VALUES (?, ?, ?)", codes)
        self._connection.executemany("DELETE FROM codes WHERE seq = ?", dropped_codes)
        fields = {(name,) for row in rows.values() for name in row.document.metadata}
        self._connection.executemany("INSERT OR IGNORE INTO fields VALUES (?)", fields)
        self._changed.update(replaced.values())
        self._documents += len(rows) - len(replaced)
        self._codes += len(codes) - codes_before
        return Added(
            inserted=len(rows) - len(replaced),
            replaced=len(replaced),
            without_code=sum(row.code is None for row in rows.values()),
        )

    def delete(self, seqs: Iterable[int]) -> None:
        """Delete documents by seq."""
        rows = [(int(seq),) for seq in seqs]
        deleted = self._connection.executemany("DELETE FROM documents WHERE seq = ?", rows)
        self._documents -= deleted.rowcount
        deleted = self._connection.executemany("DELETE FROM codes WHERE seq = ?", rows)
        self._codes -= deleted.rowcount
        self._changed.update(seq for (seq,) in rows)

    def _count_codes(self, seqs: Iterable[int]) -> int:
        query = "SELECT COUNT(*) FROM codes WHERE seq IN (SELECT value FROM json_each(?))"
        (count,) = self._connection.execute(query, (json.dumps(list(seqs)),)).fetchone()
        return int(count)

    # Rehashing: the codes of the next model are collected in a table of their own

    def start_next_codes(self) -> str:
        """Create an empty table for the codes of another model and return the token of this rehash."""
        token = secrets.token_hex(8)
        self._connection.execute("DROP TABLE IF EXISTS next_codes")
        self._connection.execute(NEXT_CODES)
        self._new_state = {"rehash": token}
        return token

    def put_next_codes(self, seqs: Sequence[int], codes: Sequence[bytes | None]) -> None:
        """Set the next codes of these documents; None for a document without a code."""
        pairs = zip(seqs, codes, strict=True)
        self._connection.executemany("DELETE FROM next_codes WHERE seq = ?", [(seq,) for seq in seqs])
        rows = [(seq, code, crc32(code, seq)) for seq, code in pairs if code is not None]
        self._connection.executemany("INSERT INTO next_codes VALUES (?, ?, ?)", rows)

    def switch(self, *, model: str, bits: int) -> None:
        """Replace the codes by the next ones; the change log is cleared, so readers reload all codes."""
        self._connection.execute("DELETE FROM next_codes WHERE seq NOT IN (SELECT seq FROM documents)")
        self._connection.execute("DROP TABLE codes")
        self._connection.execute("ALTER TABLE next_codes RENAME TO codes")
        self._new_state = {"model": model, "bits": bits, "rehash": None}
        (self._codes,) = self._connection.execute("SELECT COUNT(*) FROM codes").fetchone()
        self._connection.execute("DELETE FROM writes")
        self._connection.execute("DELETE FROM changes")

    def finish(self) -> None:
        """Log the changes of this write and update the state."""
        token = secrets.token_hex(8)
        self._connection.executemany(
            "INSERT INTO changes VALUES (?, ?)", [(self.number, seq) for seq in sorted(self._changed)]
        )
        last_dropped = (self.number if self._has_too_many_changes() else self.number - MAX_REMEMBERED_WRITES,)
        self._connection.execute("INSERT INTO writes VALUES (?, ?)", (self.number, token))
        self._connection.execute(
            "DELETE FROM writes WHERE write <= ? AND write < ?", (*last_dropped, self.number)
        )
        self._connection.execute("DELETE FROM changes WHERE write <= ?", last_dropped)
        state = replace(
            self.state,
            write=self.number,
            token=token,
            next_seq=self._next_seq,
            documents=self._documents,
            codes=self._codes,
            **self._new_state,
        )
        self._connection.execute(f"UPDATE state SET ({STATE}) = ({_STATE_MARKS})", _state_row(state))

    def _has_too_many_changes(self) -> bool:
        """Whether reloading all codes is cheaper than replaying the log; checked every 64 writes."""
        if len(self._changed) <= MAX_REMEMBERED_CHANGES and self.number % 64:
            return False
        (count,) = self._connection.execute("SELECT COUNT(*) FROM changes").fetchone()
        return bool(count > MAX_REMEMBERED_CHANGES)


_DOCUMENTS = "SELECT d.seq, d.id, d.split, d.labels, d.metadata, d.text, d.checksum FROM documents d"


def _state(connection: sqlite3.Connection) -> LocalState:
    rows = connection.execute(f"SELECT {STATE} FROM state").fetchall()
    if len(rows) != 1 or rows[0][-1] != _checksum(0, rows[0][:-1]):
        raise DamagedRowError("the state has changed on disk")
    return LocalState(*rows[0][:-1])


def _state_row(state: LocalState) -> tuple[Any, ...]:
    row = astuple(state)
    return (*row, _checksum(0, row))


def _checksum(seq: int, columns: Sequence[Any]) -> int:
    """Return the CRC-32 of a row."""
    *others, last = columns
    return crc32(str(last).encode(), crc32("\0".join(map(str, others)).encode(), seq))


def _document(row: tuple[Any, ...]) -> Document:
    seq, *columns, checksum = row
    if not _is_intact(seq, columns, checksum):
        raise DamagedRowError("a document has changed on disk")
    return from_columns(*columns)


def _is_intact(seq: int, columns: Sequence[Any], checksum: Any) -> bool:
    doc_id, split, *texts = columns
    has_types = all(type(text) is str for text in (doc_id, *texts)) and (split is None or type(split) is str)
    return has_types and checksum == _checksum(seq, columns)


def _seqs_of(connection: sqlite3.Connection, ids: Sequence[str]) -> dict[str, int]:
    """Return the seqs of existing documents by id."""
    seqs: dict[str, int] = {}
    for start in range(0, len(ids), MAX_PARAMETERS):
        batch = ids[start : start + MAX_PARAMETERS]
        # The inner query reads the index of ids alone; the join compares it with the documents.
        rows = connection.execute(
            "SELECT i.id, d.id, i.seq FROM documents i LEFT JOIN documents d ON d.seq = i.seq "
            f"WHERE i.id IN ({', '.join('?' * len(batch))})",
            batch,
        ).fetchall()
        if any(indexed != stored for indexed, stored, _ in rows):
            raise DamagedRowError("the index of ids does not agree with the documents")
        seqs.update((doc_id, seq) for doc_id, _, seq in rows)
    return seqs


def _condition(where: Filter | None) -> tuple[str, list[Any]]:
    return ("1", []) if where is None else to_sql(where, columns=COLUMNS)


def _integers(rows: sqlite3.Cursor) -> NDArray[np.int64]:
    return np.fromiter((row[0] for row in rows), dtype=np.int64)
