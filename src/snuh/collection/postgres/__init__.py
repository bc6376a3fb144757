"""Collections in PostgreSQL with pgvector: a schema of a database for each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg

from snuh.collection import backend
from snuh.collection.backend import Put
from snuh.collection.model_files import check_takes_texts, files_of
from snuh.collection.postgres import schema
from snuh.collection.postgres.backend import PgBackend
from snuh.collection.postgres.connection import Connection, PgUrl, connect, parse_url, reported
from snuh.collection.postgres.write import PgWrite, make_tables
from snuh.model import Model


def open_backend(address: str, *, timeout: float) -> backend.Backend:
    """Open a collection."""
    return PgBackend(parse_url(address), timeout=timeout)


@contextmanager
def creating(address: str, model: Model) -> Iterator[Put]:
    """Make a collection in one transaction: a stop at any point leaves nothing behind."""
    place = parse_url(address)
    check_takes_texts(model)
    files = files_of(model)
    with connect(place) as connection, reported(place.name, is_write=True):
        schema.ensure_absent(connection, place)
        _ensure_pgvector(connection, place)
        connection.execute("SET statement_timeout = 0")
        with connection.transaction():
            _ensure_schema(connection, place)
            write = PgWrite(connection, make_tables(connection, files, model.bits))
            yield write.put
            write.finish()


def _ensure_pgvector(connection: Connection, place: PgUrl) -> None:
    with suppress(psycopg.Error), connection.transaction():  # that it is missing is said next
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
    schema.pgvector(connection, place)


def _ensure_schema(connection: Connection, place: PgUrl) -> None:
    if not schema.schema_exists(connection, place):
        connection.execute(f'CREATE SCHEMA "{place.schema}"')


def ensure_absent(address: str) -> None:
    """Raise unless a collection can be made, so that nobody trains a model for nothing.

    The schema is absent, or without tables; and what it takes to make one is tried, and taken back.
    """
    place = parse_url(address)
    with connect(place) as connection, reported(place.name):
        schema.ensure_absent(connection, place)
        with connection.transaction(force_rollback=True):
            _ensure_pgvector(connection, place)
            _ensure_schema(connection, place)
            connection.execute(f'CREATE TABLE "{place.schema}".state ()')


def is_collection(address: str) -> bool:
    """Tell whether the schema holds the state of a collection."""
    place = parse_url(address)
    with connect(place) as connection, reported(place.name):
        return "state" in schema.found_columns(connection, place)


def short_name(address: str) -> str:
    """Return the name of the collection in its database."""
    return parse_url(address).schema
