"""The nearest codes, by pgvector: exact, or with the help of an HNSW index."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from snuh.collection.backend import Match, recall_of
from snuh.collection.postgres.connection import Connection, Connections
from snuh.collection.postgres.schema import index_of
from snuh.collection.postgres.sql import to_bits, to_condition
from snuh.collection.postgres.write import State
from snuh.collection.results import IndexInfo
from snuh.errors import InputError
from snuh.filters import Filter

# The index for fast searches: built by pgvector, its recall measured on the collection's own codes.

if TYPE_CHECKING:
    from snuh.collection.postgres.backend import PgBackend

SAMPLE = 100  # queries that the recall is measured with
MAX_K = 2**31 - 1  # that a column takes
EFFORTS = (40, 80, 160, 320, 640, 1_000)  # candidates that a search keeps; 1,000 are the most


def index_info_of(connection: Connection, state: State) -> IndexInfo | None:
    """Tell of the index of the codes in use; None where there is none, or it was not finished."""
    row = connection.execute(
        "SELECT f.ef_search, f.k, f.recall, f.documents FROM fast f "
        "JOIN pg_index i ON i.indexrelid = to_regclass(%s) AND i.indisvalid WHERE f.codes = %s",
        (index_of(state.codes), state.codes),
    ).fetchone()
    return None if row is None else _facts(*row)


def make_hnsw(
    backend: PgBackend, connections: Connections, finder: Finder, *, k: int, recall: float
) -> IndexInfo:
    """Build the index in the place of an older one, and keep the least effort that finds the wanted share.

    Others may search and write meanwhile.
    """
    if k > MAX_K:
        raise InputError(f"{backend.name}: k must be at most {MAX_K:,}, got {k}")
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
            reached = recall_of(exact, found)
            if reached >= recall:
                break
    with connections.writing() as connection:
        connection.execute("DELETE FROM fast")
        connection.execute(
            "INSERT INTO fast VALUES (%s, %s, %s, %s, %s)", (state.codes, ef, k, reached, documents)
        )
    return _facts(ef, k, reached, documents)


def _facts(ef: int, k: int, recall: float, documents: int) -> IndexInfo:
    return IndexInfo({"ef_search": ef}, f"an HNSW index, {ef:,} candidates", k, recall, documents)


logger = logging.getLogger(__name__)

MAX_CANDIDATES = 1_000  # that pgvector keeps
MAX_LIMIT = 2**63 - 1  # that SQL takes; no collection has so many
ITERATIVE_SINCE = (0, 8)  # pgvector that looks on where a filter leaves too few


class Finder:
    """Knows where pgvector is, and what it can do."""

    def __init__(self, schema: str, version: tuple[int, ...]) -> None:
        quoted = schema.replace('"', '""')
        self.distance = f'OPERATOR("{quoted}".<~>)'
        self.operators = f'"{quoted}".bit_hamming_ops'
        self._is_iterative = version >= ITERATIVE_SINCE

    def find(
        self,
        connection: Connection,
        state: State,
        queries: NDArray[np.uint8],
        *,
        k: int,
        radius: int | None,
        where: Filter | None,
        approximate: bool,
    ) -> list[list[Match]]:
        """Return the k nearest documents of each query, ordered by (distance, seq)."""
        k, radius = min(k, MAX_LIMIT), None if radius is None else min(radius, state.bits)
        index = index_info_of(connection, state) if approximate else None
        if approximate and index is None:
            logger.warning('all codes are read, there is no index: make one with "snuh index"')
        found = []
        for query in queries:
            places = None
            if index is not None:
                ef = index.settings["ef_search"]
                places = self.near(connection, state, query.tobytes(), k=k, where=where, ef=ef)
            if places is None or len(places) < k:  # what lies far apart the index does not reach
                places = self.exact(connection, state, query.tobytes(), k=k, radius=radius, where=where)
            found.append([place for place in places if radius is None or place.distance <= radius])
        return found

    def exact(
        self,
        connection: Connection,
        state: State,
        query: bytes,
        *,
        k: int,
        radius: int | None = None,
        where: Filter | None = None,
    ) -> list[Match]:
        """Compare the query with every code."""
        joined, condition, values = _filtered(where)
        # As a whole number the distance is no longer what an index is ordered by, so none can slip in.
        distance = f"(c.code {self.distance} %s::bit({state.bits}))::integer"
        bits = to_bits(query)
        statement = (
            f"SELECT distance, seq FROM (SELECT {distance} AS distance, c.seq FROM {state.codes} c{joined} "
            f"WHERE {condition}) every {'' if radius is None else 'WHERE distance <= %s '}"
            "ORDER BY distance, seq LIMIT %s"
        )
        bound = [bits, *values, *([] if radius is None else [radius]), k]
        return [Match(*row) for row in connection.execute(statement, bound).fetchall()]

    def near(
        self,
        connection: Connection,
        state: State,
        query: bytes,
        *,
        k: int,
        where: Filter | None = None,
        ef: int,
    ) -> list[Match]:
        """Follow the index as far as `ef` candidates; may return fewer than there are.

        All candidates are fetched, so that of equally near ones the first come first.
        """
        joined, condition, values = _filtered(where)
        ef = max(ef, min(k, MAX_CANDIDATES))
        settings = {"hnsw.ef_search": str(ef)}
        if self._is_iterative:
            settings["hnsw.iterative_scan"] = "strict_order"
        if where is None:
            settings["enable_seqscan"] = "off"
        connection.execute("; ".join(f"SET LOCAL {name} = {value}" for name, value in settings.items()))
        distance = f"c.code {self.distance} %s::bit({state.bits})"
        bits = to_bits(query)
        statement = (
            f"SELECT {distance} AS distance, c.seq FROM {state.codes} c{joined} WHERE {condition} "
            f"ORDER BY {distance} LIMIT %s"
        )
        rows = connection.execute(statement, [bits, *values, bits, max(k, ef)]).fetchall()
        return sorted(Match(int(distance), seq) for distance, seq in rows)[:k]


def _filtered(where: Filter | None) -> tuple[str, str, list[str]]:
    """Return what joins the documents, the condition on them, and its parameters."""
    condition, values = to_condition(where)
    return ("", condition, values) if where is None else (" JOIN documents d USING (seq)", condition, values)
