"""Connections to one server: pooled, and opened anew after the server was away."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, TypeAlias

import psycopg
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from snuh.collection.backend import LostConnectionError
from snuh.collection.postgres.errors import cannot_connect, reported
from snuh.collection.postgres.place import PgPlace
from snuh.errors import CollectionError

Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]  # Any: whatever a column holds

MOST_CONNECTIONS = 8
STATE = "SELECT model, bits, token, next_seq, codes, write, rehash FROM state"
READING_SECONDS = 300  # the longest that one statement of a search may take
RECONNECTING_SECONDS = 30.0  # for a server that is being started again

logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())  # what it has to say is told by errors


def connect(place: PgPlace) -> Connection:
    """Open a connection at once, or say why not."""
    try:
        connection = psycopg.connect(place.conninfo, autocommit=True)
        _prepare(place, connection)
    except psycopg.OperationalError as error:
        raise cannot_connect(place.name, error) from None  # the chain could hold the address
    return connection


def _prepare(place: PgPlace, connection: Connection) -> None:
    # Only tables of the collection are ever found by their names.
    connection.execute(f'SET search_path = "{place.schema}"')
    connection.execute(f"SET statement_timeout = '{READING_SECONDS}s'")


class Reading(NamedTuple):
    """A transaction, and the row of the collection's state; None where it may change until the end."""

    connection: Connection
    state: tuple[Any, ...] | None


class Connections:
    """Gives each thread a connection for as long as a transaction lasts."""

    def __init__(self, place: PgPlace, *, timeout: float) -> None:
        self._place, self._timeout = place, timeout
        self._mine = threading.local()
        self._pool: ConnectionPool[Connection] = ConnectionPool(
            place.conninfo,
            kwargs={"autocommit": True},
            min_size=0,
            max_size=MOST_CONNECTIONS,
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
        with self._given() as connection:
            number = None
            try:
                with reported(self._place.name), connection.transaction():
                    connection.execute("SET LOCAL statement_timeout = 0")
                    connection.execute(f"SET LOCAL lock_timeout = '{max(1, round(1000 * self._timeout))}ms'")
                    yield connection
                    ((number,),) = connection.execute("SELECT pg_current_xact_id()::text").fetchall()
            except LostConnectionError:
                # Lost before the end, nothing was written; lost at the end, the server knows.
                self._pool.check()
                if number is None or not self._was_committed(number):
                    raise

    @contextmanager
    def alone(self) -> Iterator[Connection]:
        """Give a connection without a transaction, for statements that take long and cannot be in one."""
        with connect(self._place) as connection, reported(self._place.name):
            connection.execute("SET statement_timeout = 0")
            yield connection

    def _was_committed(self, number: str) -> bool:
        with self._given() as connection, reported(self._place.name):
            found = connection.execute("SELECT pg_xact_status(%s::xid8)", (number,)).fetchone()
        return found is not None and found[0] == "committed"

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
