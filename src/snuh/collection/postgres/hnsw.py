"""The index for fast searches: built by pgvector, its recall measured on the collection's own codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snuh.collection.postgres.connections import Connection, Connections
from snuh.collection.postgres.schema import index_of
from snuh.collection.postgres.write import State
from snuh.collection.recall import share_found
from snuh.collection.results import Fast
from snuh.errors import InputError

if TYPE_CHECKING:
    from snuh.collection.postgres.backend import PgBackend
    from snuh.collection.postgres.finding import Finder

SAMPLE = 100  # queries that the recall is measured with
LARGEST_K = 2**31 - 1  # that a column takes
EFFORTS = (40, 80, 160, 320, 640, 1_000)  # candidates that a search keeps; 1,000 are the most


def fast_of(connection: Connection, state: State) -> Fast | None:
    """Tell of the index of the codes in use; None where there is none, or it was not finished."""
    row = connection.execute(
        "SELECT f.ef_search, f.k, f.recall, f.documents FROM fast f "
        "JOIN pg_index i ON i.indexrelid = to_regclass(%s) AND i.indisvalid WHERE f.codes = %s",
        (index_of(state.codes), state.codes),
    ).fetchone()
    return None if row is None else _facts(*row)


def make_hnsw(backend: PgBackend, connections: Connections, finder: Finder, *, k: int, recall: float) -> Fast:
    """Build the index in the place of an older one, and keep the least effort that finds the wanted share.

    Others may search and write meanwhile.
    """
    if k > LARGEST_K:
        raise InputError(f"{backend.name}: k must be at most {LARGEST_K:,}, got {k}")
    with backend.reading() as state:
        pass
    index = index_of(state.codes)
    with connections.alone() as connection:
        # Waiting for whoever uses the index, a plain DROP would let all who come later wait as well.
        connection.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {index}")
        connection.execute(
            f"CREATE INDEX CONCURRENTLY {index} ON {state.codes} USING hnsw (code {finder.operators})"
        )
    with connections.reading() as (connection, _):
        documents = backend.searchable()
        queries = [code.tobytes() for code in backend.sample_codes(SAMPLE).codes]
        exact = [finder.exact(connection, state, query, k=k) for query in queries]
        for ef in EFFORTS:
            found = [finder.near(connection, state, query, k=k, ef=ef) for query in queries]
            reached = share_found(exact, found)
            if reached >= recall:
                break
    with connections.writing() as connection:
        connection.execute("DELETE FROM fast")
        connection.execute(
            "INSERT INTO fast VALUES (%s, %s, %s, %s, %s)", (state.codes, ef, k, reached, documents)
        )
    return _facts(ef, k, reached, documents)


def _facts(ef: int, k: int, recall: float, documents: int) -> Fast:
    return Fast({"ef_search": ef}, f"an HNSW index, {ef:,} candidates", k, recall, documents)
