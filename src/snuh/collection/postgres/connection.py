"""Connections to PostgreSQL: URLs, a pool that survives restarts of the server, and its errors.

`postgresql://user@host:port/database?collection=tickets` is the schema `tickets` of that database. libpq
parses the rest of the URL (`sslmode=verify-full`) and supplies what is missing: PGHOST, PGPASSWORD,
~/.pgpass, a service file.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import unquote

import psycopg
from psycopg import ProgrammingError, errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from snuh.collection.backend import LostConnectionError, retry_once
from snuh.errors import CollectionError, InputError, SnuhError
from snuh.io import check_credentials, redact

PgConnection: TypeAlias = psycopg.Connection[tuple[Any, ...]]  # Any: the values of a row

MIN_POSTGRESQL = 13
DEFAULT_COLLECTION = "snuh"
COLLECTION_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
INDEX_TABLE = re.compile(r'"(codes|postings|rows)_\d+"')  # replaced by a rehash
RESERVED_NAME = re.compile(r"pg_|information_schema$")
MAX_CONNECTIONS = 8
READING_SECONDS = 300  # limit for one statement of a search
RECONNECTING_SECONDS = 30.0  # to wait for a server that restarts
# A server that disappears without closing its connections is noticed after half a minute.
CONNECTION_DEFAULTS = {
    "connect_timeout": "10",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
    "application_name": "snuh",
}
# By a part of the message of the server or libpq.
CONNECTION_ADVICE = (
    ("password authentication failed", "give the right user and password"),
    ("no password supplied", "give a password in the URL, in PGPASSWORD or in ~/.pgpass"),
    ("does not exist", "create it first, or correct the URL"),
    ("permission denied", "ask its owner for the CONNECT privilege"),
    ("no pg_hba.conf entry", "allow this host and user in the server's pg_hba.conf"),
    ("too many", "close other connections, or try again later"),
)
STATE_QUERY = "SELECT model, bits, token, next_seq, codes, write, rehash FROM state"
COMMIT_ID_QUERY = "SELECT pg_current_xact_id()::text, write, token FROM state"
WAS_COMMITTED_QUERY = """
    SELECT (write > %(number)s OR token = %(token)s) AND CASE
        WHEN %(transaction)s::xid8 < pg_snapshot_xmax(pg_current_snapshot())
        THEN pg_xact_status(%(transaction)s::xid8) = 'committed'
    END FROM state
"""

logging.getLogger("psycopg").addHandler(logging.NullHandler())  # errors are raised instead


@dataclass(frozen=True, slots=True, repr=False)
class PgUrl:
    """The parsed URL of a collection."""

    name: str  # the URL without its password
    conninfo: str  # for libpq, with the password
    schema: str  # the name of the collection; needs no quoting in SQL


def parse_url(url: str) -> PgUrl:
    """Parse a URL; InputError if it is invalid."""
    check_credentials(url)
    base, _, query = url.partition("?")
    parameters = [part for part in query.split("&") if part]
    names = [unquote(part.partition("=")[2]) for part in parameters if part.startswith("collection=")]
    others = [part for part in parameters if not part.startswith("collection=")]
    schema = names[-1] if names else DEFAULT_COLLECTION
    if not COLLECTION_NAME.fullmatch(schema) or RESERVED_NAME.match(schema):
        raise InputError(
            f"{redact(url)}: the name of a collection must be up to 63 lower-case letters, digits and _"
        )
    try:
        parsed = conninfo_to_dict(f"{base}?{'&'.join(others)}" if others else base)
    except ProgrammingError:  # its message contains the password
        raise InputError(
            f"{redact(url)}: expected a URL such as postgresql://user@host/database?collection=tickets"
        ) from None
    return PgUrl(redact(url), make_conninfo("", **{**CONNECTION_DEFAULTS, **parsed}), schema)


# Errors


@contextmanager
def translate_errors(name: str, *, is_write: bool = False) -> Iterator[None]:
    """Raise errors of PostgreSQL as SnuhErrors with a one-line message."""
    try:
        yield
    except psycopg.Error as error:
        raise translate_error(name, error, is_write=is_write) from error


def translate_error(name: str, error: psycopg.Error, *, is_write: bool = False) -> SnuhError:
    """Return the SnuhError for an error of PostgreSQL."""
    reason = _one_line(error.diag.message_primary or str(error))
    match error:
        case errors.InsufficientPrivilege() | errors.ReadOnlySqlTransaction():
            return CollectionError(f"permission denied at {name}: ask its owner for the privilege ({reason})")
        case errors.LockNotAvailable():
            return CollectionError(
                f"{name}: another process is writing to it: try again when it has finished ({reason})"
            )
        case errors.DuplicateSchema() | errors.DuplicateTable() | errors.UniqueViolation():
            return CollectionError(f"{name}: another process has just created the same: try again ({reason})")
        case errors.QueryCanceled():
            return CollectionError(f"{name}: it took too long and was cancelled ({reason})")
        case errors.DiskFull() | errors.OutOfMemory():
            return CollectionError(
                f"{name}: the server has no space left, and the write was rolled back ({reason})"
            )
        case errors.DataError() | errors.ProgramLimitExceeded() | errors.StatementTooComplex() if is_write:
            return InputError(f"{name}: a document cannot be stored ({reason})")
        case errors.UndefinedTable() if INDEX_TABLE.search(reason):
            return LostConnectionError(f"{name}: its codes were replaced by a rehash: try again ({reason})")
        case errors.UndefinedTable() | errors.UndefinedColumn() | errors.InvalidSchemaName():
            return CollectionError(f"{name}: its tables were changed: restore them from a copy ({reason})")
        case errors.SerializationFailure() | errors.DeadlockDetected():
            return LostConnectionError(
                f"{name}: another process wrote to it at the same time: try again ({reason})"
            )
        case psycopg.InterfaceError() | psycopg.OperationalError():
            return LostConnectionError(f"{name}: the connection was lost: try again ({reason})")
    return CollectionError(f"{name}: PostgreSQL reported an error ({reason})")


def _connection_error(name: str, error: psycopg.Error) -> CollectionError:
    reason = _one_line(str(error).rpartition("FATAL:")[2])
    advice = next((advice for part, advice in CONNECTION_ADVICE if part in reason), None)
    return CollectionError(
        f"cannot connect to {name}: {advice or 'is the server running, and is the URL right?'} ({reason})"
    )


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 300 else f"{line[:297]}..."


# Connections


def connect(url: PgUrl) -> PgConnection:
    """Open a connection; CollectionError if that fails."""
    try:
        connection = psycopg.connect(url.conninfo, autocommit=True)
    except psycopg.OperationalError as error:
        raise _connection_error(url.name, error) from None  # its message may contain the password
    try:
        check_version(connection.info.server_version, name=url.name)
        _configure(url, connection)
    except BaseException as error:
        connection.close()
        if isinstance(error, psycopg.OperationalError):
            raise _connection_error(url.name, error) from None
        raise
    return connection


def check_version(version: int, *, name: str) -> None:
    """Raise CollectionError if the server is too old; version 13.4 is 130004."""
    if (major := version // 10_000) < MIN_POSTGRESQL:
        raise CollectionError(
            f"{name}: expected PostgreSQL {MIN_POSTGRESQL} or newer, got {major}: update the server"
        )


def _configure(url: PgUrl, connection: PgConnection) -> None:
    # Whatever the default of the database: a writer that waited must see what the previous one wrote.
    connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    # Unqualified names refer to tables of the collection only.
    connection.execute(f'SET search_path = "{url.schema}"')
    connection.execute(f"SET statement_timeout = '{READING_SECONDS}s'")


class ReadTransaction(NamedTuple):
    """A connection in a transaction, and its row of the state table; None if the transaction writes."""

    connection: PgConnection
    state: tuple[Any, ...] | None


class CommitId(NamedTuple):
    """Identifies a write after its commit: its transaction id, and the number and token of the state."""

    transaction: str
    number: int
    token: str


class PgPool:
    """A pool of connections that assigns one to a thread for the duration of a transaction."""

    def __init__(self, url: PgUrl, *, timeout: float) -> None:
        self._url, self._timeout = url, timeout
        self._local = threading.local()
        self._pool: ConnectionPool[PgConnection] = ConnectionPool(
            url.conninfo,
            kwargs={"autocommit": True},
            min_size=0,
            max_size=MAX_CONNECTIONS,
            timeout=RECONNECTING_SECONDS,
            configure=lambda connection: _configure(url, connection),
            open=True,
        )

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()

    @contextmanager
    def reading(self) -> Iterator[ReadTransaction]:
        """Begin a read transaction at REPEATABLE READ; may be nested."""
        if (current := self._current()) is not None:
            with translate_errors(self._url.name):
                yield current
            return
        with self._acquire() as connection, translate_errors(self._url.name):
            # Both statements in one round trip.
            cursor = connection.execute(f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {STATE_QUERY}")
            cursor.nextset()
            self._local.transaction = ReadTransaction(connection, cursor.fetchone())
            try:
                yield self._local.transaction
                connection.execute("COMMIT")
            except BaseException:
                with suppress(psycopg.Error):
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def writing(self) -> Iterator[PgConnection]:
        """Begin a write transaction, committed when the block ends."""
        commit_id = None
        try:
            with self._transaction() as connection:
                yield connection
                row = connection.execute(COMMIT_ID_QUERY).fetchone()
                commit_id = None if row is None else CommitId(*row)
        except LostConnectionError:
            # Lost before COMMIT was sent, nothing is written; after that, only the server knows.
            if commit_id is None or not self._was_committed(commit_id):
                raise

    @contextmanager
    def autocommit(self) -> Iterator[PgConnection]:
        """Open a connection for long statements that cannot run in a transaction."""
        with connect(self._url) as connection, translate_errors(self._url.name):
            connection.execute("SET statement_timeout = 0")
            yield connection

    @contextmanager
    def _transaction(self) -> Iterator[PgConnection]:
        with (
            self._acquire() as connection,
            translate_errors(self._url.name, is_write=True),
            connection.transaction(),
        ):
            connection.execute("SET LOCAL statement_timeout = 0")
            connection.execute(f"SET LOCAL lock_timeout = '{max(1, round(1000 * self._timeout))}ms'")
            yield connection

    @retry_once
    def _was_committed(self, commit_id: CommitId) -> bool:
        """Ask the server whether a write was committed, after the connection was lost during COMMIT.

        A crashed server may have lost the transaction id, and may assign it again. So the number or token of
        the state must match as well. (The answer is wrong only if, after a crash and before this query, two
        other processes write, one of them with the same transaction id.)
        """
        with self._transaction() as connection:
            # Take the write lock first, which waits for a COMMIT in progress.
            connection.execute("SELECT 1 FROM state FOR UPDATE")
            row = connection.execute(WAS_COMMITTED_QUERY, commit_id._asdict()).fetchone()
        return row is not None and bool(row[0])

    def _current(self) -> ReadTransaction | None:
        return getattr(self._local, "transaction", None)

    @contextmanager
    def _acquire(self) -> Iterator[PgConnection]:
        """Assign a connection of the pool to this thread."""
        try:
            connection = self._pool.getconn()
        except PoolClosed:
            raise CollectionError(f"{self._url.name}: this collection was closed: open it again") from None
        except PoolTimeout:
            connect(self._url).close()  # raises the reason, if the server is unreachable
            raise CollectionError(f"{self._url.name}: all connections are in use: try again later") from None
        before, self._local.transaction = self._current(), ReadTransaction(connection, None)
        try:
            yield connection
        except LostConnectionError:
            self._pool.check()  # other connections are probably lost too: replace them
            raise
        finally:
            self._local.transaction = before
            self._pool.putconn(connection)
