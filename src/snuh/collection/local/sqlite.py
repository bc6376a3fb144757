"""The tables of the SQLite store, its transactions, and SQLite's errors as CollectionErrors.

| table | one row for |
|---|---|
| state | the collection: its model, its last write, and how many documents and codes it has |
| documents | a document |
| codes | the code of a document; documents without a known word have none |
| fields | a metadata field of some document so far |
| writes | one of the last writes: its number, and its token, which is globally unique |
| changes | a document replaced or deleted by a write (inserted ones have a higher seq) |

`writes` and `changes` tell a reader what changed since an earlier write. The rows of state, documents and
codes have a checksum that is verified on every read: SQLite does not notice a changed byte within a row. The
numbers of documents and codes in the state tell when rows are lost.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from snuh.errors import CollectionError
from snuh.text import shorten

STORE_VERSION = 2

TABLES = """
CREATE TABLE state (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    model TEXT NOT NULL, bits INTEGER NOT NULL,
    write INTEGER NOT NULL, token TEXT NOT NULL, next_seq INTEGER NOT NULL,
    rehash TEXT, documents INTEGER NOT NULL, codes INTEGER NOT NULL, checksum INTEGER NOT NULL
);
CREATE TABLE documents (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,
    split TEXT, labels TEXT NOT NULL, metadata TEXT NOT NULL, text TEXT NOT NULL, checksum INTEGER NOT NULL
);
CREATE TABLE codes (seq INTEGER PRIMARY KEY, code BLOB NOT NULL, checksum INTEGER NOT NULL);
CREATE TABLE fields (name TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE writes (write INTEGER PRIMARY KEY, token TEXT NOT NULL);
CREATE TABLE changes (write INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (write, seq)) WITHOUT ROWID;
"""

NEXT_CODES = (
    "CREATE TABLE next_codes (seq INTEGER PRIMARY KEY, code BLOB NOT NULL, checksum INTEGER NOT NULL)"
)

# Messages of a damaged store that SQLite reports with its generic error code.
DAMAGE_MESSAGES = ("no such table", "no such column", "malformed JSON", "Could not decode to UTF-8")
DAMAGED = 'its store is damaged: restore the folder from a copy, or see "snuh check"'
CACHE_KIB = 65_536
ADVICE = {
    sqlite3.SQLITE_BUSY: "another process is writing to it: try again when it has finished",
    sqlite3.SQLITE_LOCKED: "another process is writing to it: try again when it has finished",
    sqlite3.SQLITE_FULL: "the disk is full and this write was rolled back: free some space and run it again",
    sqlite3.SQLITE_READONLY: "it cannot be written to: check the permissions of its folder",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened: check the permissions of its folder",
    sqlite3.SQLITE_IOERR: "the disk reported an error: check its space and its health",
    sqlite3.SQLITE_CORRUPT: DAMAGED,
    sqlite3.SQLITE_NOTADB: DAMAGED,
}


class DamagedRowError(sqlite3.DatabaseError):
    """A row that is not what was written."""


class StoreConnection:
    """A connection to a store; its transactions, `reading` and `writing`, are serialized between threads.

    If another store is put in its place, by restoring a backup or creating the collection again, the next
    transaction opens that one.

    Attributes:
        file_id: device and inode of the store.
    """

    def __init__(self, path: Path, *, timeout: float) -> None:
        self._path, self._timeout = path, timeout
        self._lock = threading.RLock()
        self.file_id: tuple[int, int] | None = None
        with translate_errors(path.parent):
            self._open()

    def _open(self) -> None:
        self.is_writable = os.access(self._path, os.W_OK) and os.access(self._path.parent, os.W_OK)
        with _OPENING:
            self.file_id = _file_id(self._path)
            if self.file_id is None or all(other.file_id != self.file_id for other in _OPEN):
                _check_length(self._path)
            self._connect()
            _OPEN.add(self)
        try:
            _check_version(self._connection, self._path.parent)
        except BaseException:
            self.close()
            raise

    def _connect(self) -> None:
        # A store that was closed properly has no WAL file, and can be read from a read-only disk.
        is_immutable = not self.is_writable and not _has_wal(self._path)
        self._immutable_version = _file_version(self._path) if is_immutable else None
        mode = "rw" if self.is_writable else "ro&immutable=1" if is_immutable else "ro"
        self._connection = _connect(self._path, timeout=self._timeout, mode=mode)

    def close(self) -> None:
        """Close the connection; the last one to close checkpoints the WAL file."""
        self._connection.close()
        with _OPENING:
            _OPEN.discard(self)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Begin a read transaction; may be nested."""
        with self._lock, translate_errors(self._path.parent):
            if self._connection.in_transaction:
                yield self._connection
                return
            self._reopen_if_replaced()
            self._connection.execute("BEGIN")
            try:
                yield self._connection
            finally:
                self._connection.rollback()
            if self._immutable_version is not None and _file_version(self._path) != self._immutable_version:
                raise CollectionError(f"{self._path.parent}: {ADVICE[sqlite3.SQLITE_BUSY]}")

    def _reopen_if_replaced(self) -> None:
        """Reopen the store if the path has another one now.

        A store that was opened as immutable is also reopened if a process with write access has changed it.
        """
        is_replaced = _file_id(self._path) != self.file_id
        if not is_replaced and self._immutable_version is not None:
            is_replaced = _has_wal(self._path) or _file_version(self._path) != self._immutable_version
        if is_replaced:
            if not self._path.parent.exists():
                raise CollectionError(f"{self._path.parent} was removed while it was open")
            self.close()
            self._open()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Begin a write transaction, waiting for other writers; it is committed when the block ends."""
        folder = self._path.parent
        with self._lock, translate_errors(folder):
            self._reopen_if_replaced()
            if not self.is_writable:
                raise CollectionError(f"cannot write to {folder}: {ADVICE[sqlite3.SQLITE_READONLY]}")
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                if _file_id(self._path) != self.file_id:
                    raise CollectionError(f"{folder} was replaced during this write, which has no effect")
                self._connection.commit()
            except BaseException:
                # After some errors SQLite has already rolled back.
                if self._connection.in_transaction:
                    self._connection.rollback()
                raise


# The open connections of this process. POSIX drops all locks of a process on a file when it closes any of its
# descriptors: another process could then take the store for unused, and delete a WAL file that is in use. So
# `_check_length` must not open a store that is open elsewhere in this process.
_OPEN: weakref.WeakSet[StoreConnection] = weakref.WeakSet()
_OPENING = threading.Lock()


@contextmanager
def translate_errors(folder: Path) -> Iterator[None]:
    """Raise errors of SQLite and of a full disk as CollectionErrors with a one-line message."""
    try:
        yield
    except sqlite3.Error as error:
        if str(error).startswith("Cannot operate on a closed"):
            raise CollectionError(f"{folder}: this collection was closed: open it again") from error
        # The low byte is the primary result code.
        code = (getattr(error, "sqlite_errorcode", None) or sqlite3.SQLITE_ERROR) & 0xFF
        if isinstance(error, DamagedRowError) or (
            code == sqlite3.SQLITE_ERROR and str(error).startswith(DAMAGE_MESSAGES)
        ):
            code = sqlite3.SQLITE_CORRUPT
        if isinstance(error, sqlite3.ProgrammingError):
            raise
        advice = ADVICE.get(code, "its store could not be used")
        raise CollectionError(f"{folder}: {advice} ({shorten(' '.join(str(error).split()))})") from error
    except UnicodeDecodeError as error:  # of the schema, which SQLite's message quotes
        raise CollectionError(f"{folder}: {DAMAGED} ({error.reason})") from error
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise CollectionError(f"{folder}: {ADVICE[sqlite3.SQLITE_FULL]} ({error.strerror})") from error
        raise


def _connect(path: Path, *, timeout: float, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.resolve().as_uri()}?mode={mode}",
        uri=True,
        timeout=timeout,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        if mode == "rw":
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")  # committed writes survive a power cut
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")  # notices more damage, at no measurable cost
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    except BaseException:
        connection.close()
        raise
    return connection


def _check_version(connection: sqlite3.Connection, folder: Path) -> None:
    """Raise CollectionError for a store of another format."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version != STORE_VERSION:
        newer = version > STORE_VERSION
        advice = "update snuh" if newer else "export it with the version that made it"
        raise CollectionError(
            f"{folder} has a store of format {version}, this snuh reads {STORE_VERSION}: {advice}"
        )


def _check_length(path: Path) -> None:
    """Raise CollectionError if the file is shorter than its header says, which SQLite notices much later."""
    # With a WAL file the header may be ahead of the file until the next checkpoint, which may also delete the
    # WAL file: so it is looked for before and after reading.
    had_wal = _has_wal(path)
    try:
        with path.open("rb") as file:
            header = file.read(100)
            length = file.seek(0, os.SEEK_END)
    except FileNotFoundError as error:
        raise CollectionError(
            f"{path.parent}: its store is missing: restore the folder from a copy ({path.name})"
        ) from error
    except OSError as error:
        advice = ADVICE[sqlite3.SQLITE_CANTOPEN]
        raise CollectionError(f"{path.parent}: {advice} ({error.strerror})") from error
    if len(header) < 100 or not header.startswith(b"SQLite format 3\0"):
        raise CollectionError(
            f"{path.parent}: {ADVICE[sqlite3.SQLITE_NOTADB]} ({path.name} is not an SQLite file)"
        )
    page = int.from_bytes(header[16:18], "big")
    pages = int.from_bytes(header[28:32], "big")
    expected = pages * (65_536 if page == 1 else page)
    if length < expected and not had_wal and not _has_wal(path):
        raise CollectionError(
            f"{path.parent}: {ADVICE[sqlite3.SQLITE_CORRUPT]} "
            f"({path.name} has {length:,} of {expected:,} bytes)"
        )


def _has_wal(path: Path) -> bool:
    """Tell whether there is a WAL file with writes that are not checkpointed yet."""
    try:
        return path.with_name(path.name + "-wal").stat().st_size > 0
    except FileNotFoundError:
        return False


def _file_id(path: Path) -> tuple[int, int] | None:
    """Return the device and inode of a file; None if it does not exist."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_dev, stat.st_ino


def _file_version(path: Path) -> tuple[int, int, int]:
    """Return a value that changes when the file is written."""
    stat = path.stat()
    return stat.st_ino, stat.st_size, stat.st_mtime_ns
