"""Documents, codes and what changed when, in SQLite: the truth that everything else is made from."""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snuh.collection import backend
from snuh.collection.backend import NewDocument, by_id, from_columns, is_storable, to_columns
from snuh.collection.local.sqlite import NEXT_CODES, STORE_VERSION, TABLES, Connection, reported
from snuh.collection.results import Added, CodeRows
from snuh.corpus import Document
from snuh.errors import CollectionError
from snuh.filters import Filter, SqlColumns, to_sql

STORE_FILE = "store.sqlite"
REMEMBERED_WRITES = 100_000
BATCH_ROWS = 50_000
MAX_VALUES = 1_000  # bound to one statement
MAX_CHANGES = 1_000_000  # remembered
MAX_SEQ = 2**63 - 1
COLUMNS = SqlColumns(id="d.id", split="d.split", labels="d.labels", metadata="d.metadata")


@dataclass(frozen=True, slots=True)
class State(backend.State):
    """What a collection is at one moment."""

    write: int  # number of the last write
    rehash: str | None  # token of the rehash under way, or of one that was interrupted


class Store:
    """Reads and writes one store; a writing method belongs inside `writing`."""

    def __init__(self, folder: Path, *, timeout: float = 30.0) -> None:
        self.path = folder / STORE_FILE
        self._connection = Connection(self.path, timeout=timeout)
        with self._connection.reading() as connection:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version != STORE_VERSION:
            self.close()
            advice = "update snuh" if version > STORE_VERSION else "its store is damaged"
            raise CollectionError(
                f"{folder} has a store of format {version}, this snuh reads {STORE_VERSION}: {advice}"
            )

    @classmethod
    def create(cls, folder: Path, *, model: str, bits: int) -> None:
        """Make an empty store."""
        with (
            reported(folder),
            closing(sqlite3.connect(folder / STORE_FILE, isolation_level=None)) as connection,
        ):
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(f"BEGIN; {TABLES} PRAGMA user_version = {STORE_VERSION}; COMMIT;")
            token = secrets.token_hex(8)
            connection.execute("INSERT INTO state VALUES (1, ?, ?, 0, ?, 1, NULL)", (model, bits, token))
            connection.execute("INSERT INTO writes VALUES (0, ?)", (token,))

    @property
    def is_writable(self) -> bool:
        """Whether the folder allows writing."""
        return self._connection.is_writable

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    # Transactions

    @contextmanager
    def reading(self) -> Iterator[State]:
        """See one state of the collection until the block ends; may be nested."""
        with self._connection.reading() as connection:
            yield _state(connection)

    @contextmanager
    def writing(self) -> Iterator[Write]:
        """Write all that the block writes, or nothing."""
        with self._connection.writing() as connection:
            write = Write(connection, _state(connection))
            yield write
            write.finish()

    def state(self) -> State:
        """Return the state now."""
        with self.reading() as state:
            return state

    # Reading

    def count(self) -> int:
        """Return the number of documents."""
        return int(self._value("SELECT COUNT(*) FROM documents"))

    def code_rows(self, *, after: int = 0) -> CodeRows:
        """Return every code whose seq lies above `after`."""
        return self._code_rows("SELECT seq, code FROM codes WHERE seq > ? ORDER BY seq", (after,))

    def remembers(self, write: int, token: str) -> bool:
        """Tell whether a write is one of this store's, and recent enough to know what came after it."""
        query = "SELECT EXISTS (SELECT 1 FROM writes WHERE write = ? AND token = ?)"
        return bool(self._value(query, (write, token)))

    def token_of(self, write: int) -> str:
        """Return the token of a write, empty where it is forgotten."""
        with self._connection.reading() as connection:
            row = connection.execute("SELECT token FROM writes WHERE write = ?", (write,)).fetchone()
        return "" if row is None else str(row[0])

    def changed_since(self, write: int) -> NDArray[np.int64]:
        """Return the seqs of documents replaced or deleted after a write."""
        with self._connection.reading() as connection:
            rows = connection.execute(
                "SELECT DISTINCT seq FROM changes WHERE write > ? ORDER BY seq", (write,)
            )
            return _integers(rows)

    def code_rows_of(self, seqs: NDArray[np.int64]) -> CodeRows:
        """Return the codes that these documents have."""
        query = "SELECT seq, code FROM codes WHERE seq IN (SELECT value FROM json_each(?)) ORDER BY seq"
        return self._code_rows(query, (json.dumps(seqs.tolist()),))

    def documents_of(self, seqs: Iterable[int]) -> dict[int, Document]:
        """Return documents by their seq."""
        wanted = json.dumps([int(seq) for seq in seqs])
        query = f"{_DOCUMENTS} WHERE d.seq IN (SELECT value FROM json_each(?))"
        with self._connection.reading() as connection:
            return {row[0]: _document(row) for row in connection.execute(query, (wanted,))}

    def documents(
        self, *, after: int = 0, before: int | None = None, limit: int, where: Filter | None = None
    ) -> list[tuple[int, Document]]:
        """Return up to `most` documents with their seqs, in order, from between `after` and `before`."""
        condition, values = _condition(where)
        query = f"{_DOCUMENTS} WHERE d.seq > ? AND d.seq < ? AND ({condition}) ORDER BY d.seq LIMIT ?"
        end = MAX_SEQ if before is None else before
        with self._connection.reading() as connection:
            rows = connection.execute(query, (after, end, *values, limit))
            return [(row[0], _document(row)) for row in rows]

    def seqs_where(self, where: Filter) -> NDArray[np.int64]:
        """Return the seqs of the documents that a filter lets through, ascending."""
        condition, values = _condition(where)
        query = f"SELECT d.seq FROM documents d WHERE {condition} ORDER BY d.seq"
        with self._connection.reading() as connection:
            return _integers(connection.execute(query, values))

    def seq_of(self, doc_id: str) -> int | None:
        """Return the seq of an id."""
        if not is_storable(doc_id):
            return None
        with self._connection.reading() as connection:
            row = connection.execute("SELECT seq FROM documents WHERE id = ?", (doc_id,)).fetchone()
        return None if row is None else int(row[0])

    def fields(self, *, limit: int) -> list[str]:
        """Return names that the documents' metadata have had."""
        query = "SELECT name FROM fields ORDER BY name LIMIT ?"
        with self._connection.reading() as connection:
            return [name for (name,) in connection.execute(query, (limit,))]

    def has_field(self, name: str) -> bool:
        """Tell whether some document's metadata have had this name."""
        return bool(self._value("SELECT EXISTS (SELECT 1 FROM fields WHERE name = ?)", (name,)))

    def ids_near(self, doc_id: str, *, limit: int) -> list[str]:
        """Return the ids that come before and after one in the order of ids, for a suggestion."""
        if not is_storable(doc_id):
            return []
        queries = (
            "SELECT id FROM documents WHERE id >= ? ORDER BY id LIMIT ?",
            "SELECT id FROM documents WHERE id < ? ORDER BY id DESC LIMIT ?",
        )
        with self._connection.reading() as connection:
            found = [connection.execute(query, (doc_id, limit)).fetchall() for query in queries]
        return [name for part in found for (name,) in part]

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
                joined = b"".join([row[1] for row in rows])
                if len(joined) != len(rows) * width:
                    raise CollectionError(
                        f"{self.path.parent}: its store holds codes of a wrong length: "
                        "restore the folder from a copy"
                    )
                codes.append(np.frombuffer(joined, dtype=np.uint8).reshape(-1, width))
            return CodeRows(np.concatenate(seqs), np.concatenate(codes))


class Write:
    """What can be done within one write."""

    def __init__(self, connection: sqlite3.Connection, state: State) -> None:
        self._connection, self.state = connection, state
        self._next_seq = state.next_seq
        self._changed: set[int] = set()

    @property
    def number(self) -> int:
        """The number that this write will have."""
        return self.state.write + 1

    def put(self, new: Sequence[NewDocument]) -> Added:
        """Insert documents, or replace those with the same id where they are."""
        wanted = by_id(new, bits=self.state.bits)
        columns = {doc_id: to_columns(one.document) for doc_id, one in wanted.items()}
        known = self._seqs_of(list(wanted))
        documents, codes, gone = [], [], []
        for doc_id, one in wanted.items():
            seq = known.get(doc_id)
            if seq is None:
                seq, self._next_seq = self._next_seq, self._next_seq + 1
            elif one.code is None:
                gone.append((seq,))
            documents.append((seq, *columns[doc_id]))
            if one.code is not None:
                codes.append((seq, one.code))
        self._connection.executemany("INSERT OR REPLACE INTO documents VALUES (?, ?, ?, ?, ?, ?)", documents)
        self._connection.executemany("INSERT OR REPLACE INTO codes VALUES (?, ?)", codes)
        self._connection.executemany("DELETE FROM codes WHERE seq = ?", gone)
        names = {(name,) for one in wanted.values() for name in one.document.metadata}
        self._connection.executemany("INSERT OR IGNORE INTO fields VALUES (?)", names)
        self._changed.update(known.values())
        without = sum(one.code is None for one in wanted.values())
        return Added(len(wanted) - len(known), len(known), without)

    def _seqs_of(self, ids: Sequence[str]) -> dict[str, int]:
        known: dict[str, int] = {}
        for start in range(0, len(ids), MAX_VALUES):
            part = ids[start : start + MAX_VALUES]
            query = f"SELECT id, seq FROM documents WHERE id IN ({', '.join('?' * len(part))})"
            known.update(self._connection.execute(query, part).fetchall())
        return known

    def delete(self, seqs: Iterable[int]) -> None:
        """Delete documents by seq."""
        gone = [(int(seq),) for seq in seqs]
        self._connection.executemany("DELETE FROM documents WHERE seq = ?", gone)
        self._connection.executemany("DELETE FROM codes WHERE seq = ?", gone)
        self._changed.update(seq for (seq,) in gone)

    # Codes of another model, beside those in use

    def start_next_codes(self) -> str:
        """Make an empty place for codes of another model; return the token of this rehash."""
        token = secrets.token_hex(8)
        self._connection.execute("DROP TABLE IF EXISTS next_codes")
        self._connection.execute(NEXT_CODES)
        self._connection.execute("UPDATE state SET rehash = ?", (token,))
        return token

    def put_next_codes(self, seqs: Sequence[int], codes: Sequence[bytes | None]) -> None:
        """Set what these documents' codes will be; None for none."""
        pairs = zip(seqs, codes, strict=True)
        self._connection.executemany("DELETE FROM next_codes WHERE seq = ?", [(seq,) for seq in seqs])
        known = [(seq, code) for seq, code in pairs if code is not None]
        self._connection.executemany("INSERT INTO next_codes VALUES (?, ?)", known)

    def switch(self, *, model: str, bits: int) -> None:
        """Let the next codes be the codes; whoever has a copy of the old ones must read all anew."""
        self._connection.execute("DELETE FROM next_codes WHERE seq NOT IN (SELECT seq FROM documents)")
        self._connection.execute("DROP TABLE codes")
        self._connection.execute("ALTER TABLE next_codes RENAME TO codes")
        self._connection.execute("UPDATE state SET model = ?, bits = ?, rehash = NULL", (model, bits))
        self._connection.execute("DELETE FROM writes")
        self._connection.execute("DELETE FROM changes")

    def finish(self) -> None:
        """Number this write and note what it changed."""
        token = secrets.token_hex(8)
        self._connection.executemany(
            "INSERT INTO changes VALUES (?, ?)", [(self.number, seq) for seq in sorted(self._changed)]
        )
        forgotten = (self.number if self._has_too_many_changes() else self.number - REMEMBERED_WRITES,)
        self._connection.execute("INSERT INTO writes VALUES (?, ?)", (self.number, token))
        self._connection.execute(
            "DELETE FROM writes WHERE write <= ? AND write < ?", (*forgotten, self.number)
        )
        self._connection.execute("DELETE FROM changes WHERE write <= ?", forgotten)
        self._connection.execute(
            "UPDATE state SET write = ?, token = ?, next_seq = ?", (self.number, token, self._next_seq)
        )

    def _has_too_many_changes(self) -> bool:
        """Whether reading all codes anew is less work than keeping track; looked at now and then."""
        if len(self._changed) <= MAX_CHANGES and self.number % 64:
            return False
        (count,) = self._connection.execute("SELECT COUNT(*) FROM changes").fetchone()
        return bool(count > MAX_CHANGES)


_DOCUMENTS = "SELECT d.seq, d.id, d.split, d.labels, d.metadata, d.text FROM documents d"


def _state(connection: sqlite3.Connection) -> State:
    row = connection.execute("SELECT model, bits, token, next_seq, write, rehash FROM state").fetchone()
    if row is None:
        raise CollectionError("the store has lost its state: restore the folder from a copy")
    return State(*row)


def _condition(where: Filter | None) -> tuple[str, list[Any]]:
    return ("1", []) if where is None else to_sql(where, columns=COLUMNS)


def _document(row: tuple[Any, ...]) -> Document:
    return from_columns(*row[1:])


def _integers(rows: sqlite3.Cursor) -> NDArray[np.int64]:
    return np.fromiter((row[0] for row in rows), dtype=np.int64)
