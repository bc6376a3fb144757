"""Collections in PostgreSQL with pgvector: one schema per collection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg

from snuh.collection import backend
from snuh.collection.backend import Put
from snuh.collection.model_files import check_takes_texts, files_of
from snuh.collection.postgres import schema
from snuh.collection.postgres.backend import PgBackend
from snuh.collection.postgres.connection import PgConnection, PgUrl, connect, parse_url, translate_errors
from snuh.collection.postgres.words import WordWriter
from snuh.collection.postgres.write import PgWrite, create_tables, term_reader
from snuh.model import Model


def open_backend(location: str, *, timeout: float) -> backend.Backend:
    """Open a collection."""
    return PgBackend(parse_url(location), timeout=timeout)


@contextmanager
def creating(location: str, model: Model, *, words: bool = True) -> Iterator[Put]:
    """Create a collection in one transaction: if interrupted, it leaves nothing behind."""
    url = parse_url(location)
    check_takes_texts(model)
    files = files_of(model)
    with connect(url) as connection, translate_errors(url.name, is_write=True):
        schema.ensure_absent(connection, url)
        _ensure_pgvector(connection, url)
        connection.execute("SET statement_timeout = 0")
        with connection.transaction():
            _ensure_schema(connection, url)
            state = create_tables(connection, files, model.bits, words=words)
            index = WordWriter(connection, state.codes, state.bits, term_reader(model)) if words else None
            write = PgWrite(connection, state, index)
            yield write.put
            write.finish()


def _ensure_pgvector(connection: PgConnection, url: PgUrl) -> None:
    with suppress(psycopg.Error), connection.transaction():  # reported by the check that follows
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
    schema.check_pgvector(connection, url)


def _ensure_schema(connection: PgConnection, url: PgUrl) -> None:
    if not schema.schema_exists(connection, url):
        connection.execute(f'CREATE SCHEMA "{url.schema}"')


def ensure_absent(location: str) -> None:
    """Raise InputError unless the schema is absent or empty, CollectionError if privileges are missing.

    All steps of a creation are tried and rolled back, so that errors show before a model is trained.
    """
    url = parse_url(location)
    with connect(url) as connection, translate_errors(url.name):
        schema.ensure_absent(connection, url)
        with connection.transaction(force_rollback=True):
            _ensure_pgvector(connection, url)
            _ensure_schema(connection, url)
            connection.execute(f'CREATE TABLE "{url.schema}".state ()')


def is_collection(location: str) -> bool:
    """Tell whether the schema has the state table of a collection."""
    url = parse_url(location)
    with connect(url) as connection, translate_errors(url.name):
        return "state" in schema.read_columns(connection, url)


def short_name(location: str) -> str:
    """Return the name of the schema."""
    return parse_url(location).schema
