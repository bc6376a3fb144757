"""Connections to one server: pooled, and opened anew after the server was away."""

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
from snuh.urls import check_characters, redact

# The address of a collection in PostgreSQL: libpq's own, and the name of the collection.
#
# `postgresql://user@host:port/database?collection=tickets` is the schema `tickets` of that database. Whatever
# libpq takes may follow (`sslmode=verify-full`), and what is missing comes from where libpq takes it: PGHOST,
# PGPASSWORD, ~/.pgpass, a service file.

DEFAULT_COLLECTION = "snuh"
COLLECTION = re.compile(r"[a-z_][a-z0-9_]{0,62}")
RESERVED = re.compile(r"pg_|information_schema$")
# A server that is gone without a word is noticed after half a minute.
CONNECTION_DEFAULTS = {
    "connect_timeout": "10",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
    "application_name": "snuh",
}


@dataclass(frozen=True, slots=True, repr=False)
class PgUrl:
    """Where a collection is."""

    name: str  # the address without its password
    conninfo: str  # with it
    schema: str  # the name of the collection: safe to write into SQL


def parse_url(address: str) -> PgUrl:
    """Take an address apart; InputError where it is none."""
    check_characters(address)
    base, _, query = address.partition("?")
    parameters = [part for part in query.split("&") if part]
    names = [unquote(part.partition("=")[2]) for part in parameters if part.startswith("collection=")]
    others = [part for part in parameters if not part.startswith("collection=")]
    schema = names[-1] if names else DEFAULT_COLLECTION
    if not COLLECTION.fullmatch(schema) or RESERVED.match(schema):
        raise InputError(
            f"{redact(address)}: a collection's name is made of up to 63 small letters, digits and _"
        )
    try:
        given = conninfo_to_dict(f"{base}?{'&'.join(others)}" if others else base)
    except ProgrammingError:  # its text holds the address with the password
        raise InputError(
            f"{redact(address)}: expected an address such as postgresql://user@host/database?collection=tickets"
        ) from None
    return PgUrl(redact(address), make_conninfo("", **{**CONNECTION_DEFAULTS, **given}), schema)


# What PostgreSQL says, in one sentence that names the collection and says what to do.

# What the server or libpq says when no connection comes about, and what to do about it.
ADVICE = (
    ("password authentication failed", "give the right user and password"),
    ("no password supplied", "give a password in the address, in PGPASSWORD or in ~/.pgpass"),
    ("does not exist", "make it first, or correct the address"),
    ("permission denied", "ask its owner for the right to connect"),
    ("no pg_hba.conf entry", "let the server accept this machine and user"),
    ("too many", "close other connections, or try again later"),
)


def cannot_connect(name: str, error: psycopg.Error) -> CollectionError:
    """Return what to raise where no connection comes about."""
    said = one_line(str(error).rpartition("FATAL:")[2])
    advice = next((advice for words, advice in ADVICE if words in said), None)
    return CollectionError(
        f"cannot connect to {name}: {advice or 'is the server running, and is the address right?'} ({said})"
    )


@contextmanager
def reported(name: str, *, is_write: bool = False) -> Iterator[None]:
    """Say in one line what went wrong."""
    try:
        yield
    except psycopg.Error as error:
        raise of_error(name, error, is_write=is_write) from error


def of_error(name: str, error: psycopg.Error, *, is_write: bool = False) -> SnuhError:
    """Return what an error of PostgreSQL is for a user of snuh."""
    said = one_line(error.diag.message_primary or str(error))
    match error:
        case errors.InsufficientPrivilege() | errors.ReadOnlySqlTransaction():
            return CollectionError(f"permission denied at {name}: ask its owner for the right ({said})")
        case errors.LockNotAvailable():
            return CollectionError(
                f"{name}: another process is writing to it: try again when it has finished ({said})"
            )
        case errors.DuplicateSchema() | errors.DuplicateTable() | errors.UniqueViolation():
            return CollectionError(f"{name}: another process has just made the same: try again ({said})")
        case errors.QueryCanceled():
            return CollectionError(f"{name}: it took too long and was given up ({said})")
        case errors.DiskFull() | errors.OutOfMemory():
            return CollectionError(f"{name}: the server has no space left: nothing of it was kept ({said})")
        case errors.DataError() | errors.ProgramLimitExceeded() | errors.StatementTooComplex() if is_write:
            return InputError(f"{name}: a document cannot be stored ({said})")
        case errors.UndefinedTable() if '"codes_' in said:
            return LostConnectionError(f"{name}: its codes were replaced meanwhile: try again ({said})")
        case errors.UndefinedTable() | errors.UndefinedColumn() | errors.InvalidSchemaName():
            return CollectionError(
                f"{name}: its tables were changed by others: restore them from a copy ({said})"
            )
        case errors.SerializationFailure() | errors.DeadlockDetected():
            return LostConnectionError(
                f"{name}: another process wrote to it at the same time: try again ({said})"
            )
        case psycopg.InterfaceError() | psycopg.OperationalError():
            return LostConnectionError(f"{name}: the connection was lost: try again ({said})")
    return CollectionError(f"{name}: PostgreSQL refused it ({said})")


def one_line(text: str) -> str:
    """Return a text of the server's without line breaks, and not too long."""
    line = " ".join(text.split())
    return line if len(line) <= 300 else f"{line[:297]}..."


Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]  # Any: whatever a column holds

MAX_CONNECTIONS = 8
STATE = "SELECT model, bits, token, next_seq, codes, write, rehash FROM state"
LAST_WRITE = "SELECT pg_current_xact_id()::text, write, token FROM state"
WAS_KEPT = """
    SELECT (write > %(number)s OR token = %(token)s) AND CASE
        WHEN %(transaction)s::xid8 < pg_snapshot_xmax(pg_current_snapshot())
        THEN pg_xact_status(%(transaction)s::xid8) = 'committed'
    END FROM state
"""
READING_SECONDS = 300  # the longest that one statement of a search may take
RECONNECTING_SECONDS = 30.0  # for a server that is being started again
OLDEST_POSTGRESQL = 13

logging.getLogger("psycopg").addHandler(logging.NullHandler())  # what it has to say is told by errors


def connect(place: PgUrl) -> Connection:
    """Open a connection at once, or say why not."""
    try:
        connection = psycopg.connect(place.conninfo, autocommit=True)
    except psycopg.OperationalError as error:
        raise cannot_connect(place.name, error) from None  # the chain could hold the address
    try:
        check_version(connection.info.server_version, name=place.name)
        _prepare(place, connection)
    except BaseException as error:
        connection.close()
        if isinstance(error, psycopg.OperationalError):
            raise cannot_connect(place.name, error) from None
        raise
    return connection


def check_version(version: int, *, name: str) -> None:
    """Raise CollectionError for a server that is too old; 130004 is 13.4."""
    if (major := version // 10_000) < OLDEST_POSTGRESQL:
        raise CollectionError(
            f"{name}: expected PostgreSQL {OLDEST_POSTGRESQL} or newer, got {major}: update the server"
        )


def _prepare(place: PgUrl, connection: Connection) -> None:
    # Whatever the database prefers: who waited for another writer goes on from what that one wrote.
    connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    # Only tables of the collection are ever found by their names.
    connection.execute(f'SET search_path = "{place.schema}"')
    connection.execute(f"SET statement_timeout = '{READING_SECONDS}s'")


class Reading(NamedTuple):
    """A transaction, and the row of the collection's state; None where it may change until the end."""

    connection: Connection
    state: tuple[Any, ...] | None


class LastWrite(NamedTuple):
    """What tells whether a write was kept: its transaction, and the number and token in the state."""

    transaction: str
    number: int
    token: str


class Connections:
    """Gives each thread a connection for as long as a transaction lasts."""

    def __init__(self, place: PgUrl, *, timeout: float) -> None:
        self._place, self._timeout = place, timeout
        self._mine = threading.local()
        self._pool: ConnectionPool[Connection] = ConnectionPool(
            place.conninfo,
            kwargs={"autocommit": True},
            min_size=0,
            max_size=MAX_CONNECTIONS,
            timeout=RECONNECTING_SECONDS,
            configure=lambda connection: _prepare(place, connection),
            open=True,
        )

    def close(self) -> None:
        """End all connections."""
        self._pool.close()

    @contextmanager
    def reading(self) -> Iterator[Reading]:
        """See one state of the database, whatever others write meanwhile; may be nested."""
        if (mine := self._current()) is not None:
            with reported(self._place.name):
                yield mine
            return
        with self._given() as connection, reported(self._place.name):
            # Both at once: on its way to a server and back, a statement takes longer than in it.
            cursor = connection.execute(f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {STATE}")
            cursor.nextset()
            self._mine.reading = Reading(connection, cursor.fetchone())
            try:
                yield self._mine.reading
                connection.execute("COMMIT")
            except BaseException:
                with suppress(psycopg.Error):
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Write all of it or nothing."""
        write = None
        try:
            with self._transaction() as connection:
                yield connection
                row = connection.execute(LAST_WRITE).fetchone()
                write = None if row is None else LastWrite(*row)
        except LostConnectionError:
            # Lost before the end, nothing was written; lost at the end, the server knows.
            if write is None or not self._was_kept(write):
                raise

    @contextmanager
    def alone(self) -> Iterator[Connection]:
        """Give a connection without a transaction, for statements that take long and cannot be in one."""
        with connect(self._place) as connection, reported(self._place.name):
            connection.execute("SET statement_timeout = 0")
            yield connection

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        with (
            self._given() as connection,
            reported(self._place.name, is_write=True),
            connection.transaction(),
        ):
            connection.execute("SET LOCAL statement_timeout = 0")
            connection.execute(f"SET LOCAL lock_timeout = '{max(1, round(1000 * self._timeout))}ms'")
            yield connection

    @retry_once
    def _was_kept(self, write: LastWrite) -> bool:
        """Ask the server for the fate of a write whose end was not heard of.

        A server that crashed may never have stored the number of the transaction: then it is still to come,
        or another has got it meanwhile. So the state must have come as far as well. (Only a crash after which
        two others write, one of them with that very number, before this question comes, is taken wrongly.)
        """
        with self._transaction() as connection:
            # First the lock of all writers: a COMMIT that is still under way comes to its end.
            connection.execute("SELECT 1 FROM state FOR UPDATE")
            row = connection.execute(WAS_KEPT, write._asdict()).fetchone()
        return row is not None and bool(row[0])

    def _current(self) -> Reading | None:
        return getattr(self._mine, "reading", None)

    @contextmanager
    def _given(self) -> Iterator[Connection]:
        """Lend a connection to this thread."""
        try:
            connection = self._pool.getconn()
        except PoolClosed:
            raise CollectionError(f"{self._place.name}: it was closed here: open it again") from None
        except PoolTimeout:
            connect(self._place).close()  # says why there is none
            raise CollectionError(
                f"{self._place.name}: all connections are in use: try again later"
            ) from None
        before, self._mine.reading = self._current(), Reading(connection, None)
        try:
            yield connection
        except LostConnectionError:
            self._pool.check()  # the others are lost as well: let the next try have a new one
            raise
        finally:
            self._mine.reading = before
            self._pool.putconn(connection)
