"""A connection to a store, whose transactions either happen or do not, and whose errors say what to do."""

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

# What SQLite says of a store that lacks a part, with the code of any mistake.
LACKING = ("no such table", "no such column", "malformed JSON")
CACHE_KIB = 65_536
ADVICE = {
    sqlite3.SQLITE_BUSY: "another process is writing to it: try again when it has finished",
    sqlite3.SQLITE_LOCKED: "another process is writing to it: try again when it has finished",
    sqlite3.SQLITE_FULL: "the disk is full: nothing of this write was kept; free some space and run it again",
    sqlite3.SQLITE_READONLY: "it cannot be written to: check the permissions of its folder",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened: check the permissions of its folder",
    sqlite3.SQLITE_IOERR: "the disk reported an error: check its space and its health",
    sqlite3.SQLITE_CORRUPT: "its store is damaged: restore the folder from a copy",
    sqlite3.SQLITE_NOTADB: "its store is damaged: restore the folder from a copy",
}


class Connection:
    """One connection; `reading` and `writing` are its transactions, which threads take in turns."""

    def __init__(self, path: Path, *, timeout: float) -> None:
        self._path, self._timeout = path, timeout
        self._turn = threading.RLock()
        self.file: tuple[int, int] | None = None  # what tells the store from every other file
        self.is_writable = os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
        with reported(path.parent):
            self._open()

    def _open(self) -> None:
        with _OPENING:
            self.file = _file(self._path)
            if self.file is None or all(other.file != self.file for other in _OPEN):
                _check_length(self._path)
            self._connect()
            _OPEN.add(self)

    def _connect(self) -> None:
        # A store that was closed properly has no log beside it and can be read from a read-only disk.
        is_at_rest = not self.is_writable and not _has_log(self._path)
        self._frozen = _version(self._path) if is_at_rest else None
        mode = "rw" if self.is_writable else "ro&immutable=1" if is_at_rest else "ro"
        self._connection = _connect(self._path, timeout=self._timeout, mode=mode)

    def close(self) -> None:
        """End the connection; the last one to close tidies the store up."""
        self._connection.close()
        with _OPENING:
            _OPEN.discard(self)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """See one state of the store, whatever others write meanwhile; may be nested."""
        with self._turn, reported(self._path.parent):
            if self._connection.in_transaction:
                yield self._connection
                return
            self._thaw()
            self._connection.execute("BEGIN")
            try:
                yield self._connection
            finally:
                self._connection.rollback()
            if self._frozen is not None and _version(self._path) != self._frozen:
                raise CollectionError(f"{self._path.parent}: {ADVICE[sqlite3.SQLITE_BUSY]}")

    def _thaw(self) -> None:
        """Open a store anew that seemed to be at rest, where someone with more rights has written to it."""
        if self._frozen is not None and (_has_log(self._path) or _version(self._path) != self._frozen):
            self.close()
            self._open()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Write all of it or nothing; waits for another writer."""
        if not self.is_writable:
            raise CollectionError(f"cannot write to {self._path.parent}: {ADVICE[sqlite3.SQLITE_READONLY]}")
        with self._turn, reported(self._path.parent):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.commit()
            except BaseException:
                # Where SQLite itself has undone the transaction already, there is nothing left to undo.
                if self._connection.in_transaction:
                    self._connection.rollback()
                raise


# The connections of this process. To close a file that it also has open elsewhere gives up all its locks on
# it: then another process takes the store for one that nobody uses, and removes the log that is still in use.
_OPEN: weakref.WeakSet[Connection] = weakref.WeakSet()
_OPENING = threading.Lock()


@contextmanager
def reported(folder: Path) -> Iterator[None]:
    """Say what went wrong in the store of a collection in one line."""
    try:
        yield
    except sqlite3.Error as error:
        # The low byte is the kind of error; the rest tells its variants apart.
        if str(error).startswith("Cannot operate on a closed"):
            raise CollectionError(f"{folder}: it was closed here: open it again") from error
        kind = (getattr(error, "sqlite_errorcode", None) or sqlite3.SQLITE_ERROR) & 0xFF
        if kind == sqlite3.SQLITE_ERROR and str(error).startswith(LACKING):
            kind = sqlite3.SQLITE_CORRUPT
        advice = ADVICE.get(kind)
        if advice is None:
            raise
        raise CollectionError(f"{folder}: {advice} ({error})") from error
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise CollectionError(f"{folder}: {ADVICE[sqlite3.SQLITE_FULL]} ({error.strerror})") from error
        raise


def _connect(path: Path, *, timeout: float, mode: str) -> sqlite3.Connection:
    location = path.resolve().as_uri()
    connection = sqlite3.connect(
        f"{location}?mode={mode}", uri=True, timeout=timeout, isolation_level=None, check_same_thread=False
    )
    try:
        if mode == "rw":
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")  # what was acknowledged survives a power cut
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    except BaseException:
        connection.close()
        raise
    return connection


def _check_length(path: Path) -> None:
    """Raise where the file is shorter than its own header says, which SQLite finds out only much later."""
    # With a log beside it the header may be ahead of the file until the log is carried over, and then the log
    # may go: so it is looked for before and after.
    had_log = _has_log(path)
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
            f"{path.parent}: {ADVICE[sqlite3.SQLITE_NOTADB]} ({path.name} is no SQLite file)"
        )
    page = int.from_bytes(header[16:18], "big")
    pages = int.from_bytes(header[28:32], "big")
    expected = pages * (65_536 if page == 1 else page)
    if length < expected and not had_log and not _has_log(path):
        raise CollectionError(
            f"{path.parent}: {ADVICE[sqlite3.SQLITE_CORRUPT]} "
            f"({path.name} has {length:,} of {expected:,} bytes)"
        )


def _has_log(path: Path) -> bool:
    """Tell whether something was written that is not carried over into the store itself yet."""
    try:
        return path.with_name(path.name + "-wal").stat().st_size > 0
    except FileNotFoundError:
        return False


def _file(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from every other; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _version(path: Path) -> tuple[int, int, int]:
    """Return what changes with every write to the file itself."""
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


# The tables of a collection's store.
#
# | table | one row for |
# |---|---|
# | state | the collection: its model, and the number and token of the last write |
# | documents | a document; `seq` is its place in the order of insertion and never used again |
# | codes | the code of a document; those without any word that the model knows have none |
# | fields | a name that some document's metadata had |
# | writes | one of the last writes: its number and its token, which no other store has |
# | changes | a document that a write replaced or deleted (new ones are known by their seq) |
#
# `writes` and `changes` tell a reader who saw an earlier write what to read anew.

STORE_VERSION = 1

TABLES = """
CREATE TABLE state (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    model TEXT NOT NULL, bits INTEGER NOT NULL,
    write INTEGER NOT NULL, token TEXT NOT NULL, next_seq INTEGER NOT NULL,
    rehash TEXT
);
CREATE TABLE documents (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,
    split TEXT, labels TEXT NOT NULL, metadata TEXT NOT NULL, text TEXT NOT NULL
);
CREATE TABLE codes (seq INTEGER PRIMARY KEY, code BLOB NOT NULL);
CREATE TABLE fields (name TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE writes (write INTEGER PRIMARY KEY, token TEXT NOT NULL);
CREATE TABLE changes (write INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (write, seq)) WITHOUT ROWID;
"""

NEXT_CODES = "CREATE TABLE next_codes (seq INTEGER PRIMARY KEY, code BLOB NOT NULL)"
