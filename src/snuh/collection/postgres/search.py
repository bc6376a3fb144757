"""Hamming search with pgvector: exact, or with an HNSW index whose recall is measured when it is built."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from snuh.collection.backend import Match, recall_of
from snuh.collection.postgres.connection import PgConnection, PgPool
from snuh.collection.postgres.schema import index_of
from snuh.collection.postgres.sql import to_bits, to_condition
from snuh.collection.postgres.write import PgState
from snuh.collection.results import IndexInfo
from snuh.errors import InputError
from snuh.filters import Filter

if TYPE_CHECKING:
    from snuh.collection.postgres.backend import PgBackend

logger = logging.getLogger(__name__)

RECALL_QUERIES = 100  # codes of the collection, to measure the recall with
MAX_K = 2**31 - 1  # of the integer column that stores it
MAX_EF_SEARCH = 1_000  # of pgvector
EF_SEARCH_CHOICES = (40, 80, 160, 320, 640, MAX_EF_SEARCH)
MAX_LIMIT = 2**63 - 1  # of SQL
MIN_ITERATIVE_PGVECTOR = (0, 8)  # continues an index scan while a filter leaves fewer than k rows


def read_index_info(connection: PgConnection, state: PgState) -> IndexInfo | None:
    """Describe the index of the current codes; None if there is none, or it was not completed."""
    row = connection.execute(
        "SELECT f.ef_search, f.k, f.recall, f.documents FROM fast f "
        "JOIN pg_index i ON i.indexrelid = to_regclass(%s) AND i.indisvalid WHERE f.codes = %s",
        (index_of(state.codes), state.codes),
    ).fetchone()
    return None if row is None else _index_info(*row)


def build_hnsw(
    backend: PgBackend, pool: PgPool, search: HammingSearch, *, k: int, recall: float
) -> IndexInfo:
    """Replace the index, and choose the smallest `ef_search` that reaches the recall at k.

    Searches and writes continue meanwhile.
    """
    if k > MAX_K:
        raise InputError(f"{backend.name}: k must be at most {MAX_K:,}, got {k}")
    with backend.reading() as state:
        pass
    index = index_of(state.codes)
    with pool.autocommit() as connection:
        # A plain DROP would wait for transactions that use the index, and block all later ones.
        connection.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {index}")
        connection.execute(
            f"CREATE INDEX CONCURRENTLY {index} ON {state.codes} USING hnsw (code {search.operator_class})"
        )
    with pool.reading() as (connection, _):
        documents = backend.searchable()
        queries = [code.tobytes() for code in backend.sample_codes(RECALL_QUERIES).codes]
        exact = [search.exact(connection, state, query, k=k) for query in queries]
        for ef in EF_SEARCH_CHOICES:
            approximate = [search.approximate(connection, state, query, k=k, ef=ef) for query in queries]
            reached = recall_of(exact, approximate)
            if reached >= recall:
                break
    with pool.writing() as connection:
        connection.execute("DELETE FROM fast")
        connection.execute(
            "INSERT INTO fast VALUES (%s, %s, %s, %s, %s)", (state.codes, ef, k, reached, documents)
        )
    return _index_info(ef, k, reached, documents)


def _index_info(ef: int, k: int, recall: float, documents: int) -> IndexInfo:
    return IndexInfo({"ef_search": ef}, f"an HNSW index, {ef:,} candidates", k, recall, documents)


class HammingSearch:
    """Searches with the pgvector installed in a schema, of a version."""

    def __init__(self, schema: str, version: tuple[int, ...]) -> None:
        quoted = schema.replace('"', '""')
        self.distance_operator = f'OPERATOR("{quoted}".<~>)'
        self.operator_class = f'"{quoted}".bit_hamming_ops'
        self._is_iterative = version >= MIN_ITERATIVE_PGVECTOR

    def find(
        self,
        connection: PgConnection,
        state: PgState,
        queries: NDArray[np.uint8],
        *,
        k: int,
        radius: int | None,
        where: Filter | None,
        approximate: bool,
    ) -> list[list[Match]]:
        """Return the k nearest documents of each query, ordered by (distance, seq)."""
        k, radius = min(k, MAX_LIMIT), None if radius is None else min(radius, state.bits)
        index = read_index_info(connection, state) if approximate else None
        if approximate and index is None:
            logger.warning('there is no index, so all codes are scanned: build one with "snuh index"')
        results = []
        for query in queries:
            matches = None
            if index is not None:
                ef = index.settings["ef_search"]
                matches = self.approximate(connection, state, query.tobytes(), k=k, where=where, ef=ef)
            if matches is None or len(matches) < k:  # an index scan may miss distant rows
                matches = self.exact(connection, state, query.tobytes(), k=k, radius=radius, where=where)
            results.append([match for match in matches if radius is None or match.distance <= radius])
        return results

    def exact(
        self,
        connection: PgConnection,
        state: PgState,
        query: bytes,
        *,
        k: int,
        radius: int | None = None,
        where: Filter | None = None,
    ) -> list[Match]:
        """Scan all codes."""
        join, condition, values = _join_documents(where)
        # Cast to an integer, the expression no longer matches the index, so the planner cannot use it.
        distance = f"(c.code {self.distance_operator} %s::bit({state.bits}))::integer"
        bits = to_bits(query)
        statement = (
            f"SELECT distance, seq FROM (SELECT {distance} AS distance, c.seq FROM {state.codes} c{join} "
            f"WHERE {condition}) distances {'' if radius is None else 'WHERE distance <= %s '}"
            "ORDER BY distance, seq LIMIT %s"
        )
        bound = [bits, *values, *([] if radius is None else [radius]), k]
        return [Match(*row) for row in connection.execute(statement, bound).fetchall()]

    def approximate(
        self,
        connection: PgConnection,
        state: PgState,
        query: bytes,
        *,
        k: int,
        where: Filter | None = None,
        ef: int,
    ) -> list[Match]:
        """Search the index with `ef` candidates; may return fewer than k matches.

        All candidates are fetched, so that ties are ordered by seq.
        """
        join, condition, values = _join_documents(where)
        ef = max(ef, min(k, MAX_EF_SEARCH))
        settings = {"hnsw.ef_search": str(ef)}
        if self._is_iterative:
            settings["hnsw.iterative_scan"] = "strict_order"
        if where is None:
            settings["enable_seqscan"] = "off"
        connection.execute("; ".join(f"SET LOCAL {name} = {value}" for name, value in settings.items()))
        distance = f"c.code {self.distance_operator} %s::bit({state.bits})"
        bits = to_bits(query)
        statement = (
            f"SELECT {distance} AS distance, c.seq FROM {state.codes} c{join} WHERE {condition} "
            f"ORDER BY {distance} LIMIT %s"
        )
        rows = connection.execute(statement, [bits, *values, bits, max(k, ef)]).fetchall()
        return sorted(Match(int(distance), seq) for distance, seq in rows)[:k]


def _join_documents(where: Filter | None) -> tuple[str, str, list[str]]:
    """Return the join with the documents that a filter needs, its condition and its parameters."""
    condition, values = to_condition(where)
    return ("", condition, values) if where is None else (" JOIN documents d USING (seq)", condition, values)
