"""The nearest codes, by pgvector: exact, or with the help of an HNSW index."""

from __future__ import annotations

import logging

import numpy as np
from numpy.typing import NDArray

from snuh.collection.backend import Place
from snuh.collection.postgres.bitstrings import to_bits
from snuh.collection.postgres.conditions import to_condition
from snuh.collection.postgres.connections import Connection
from snuh.collection.postgres.hnsw import fast_of
from snuh.collection.postgres.write import State
from snuh.filters import Filter

logger = logging.getLogger(__name__)

MOST_CANDIDATES = 1_000  # that pgvector keeps
LARGEST_LIMIT = 2**63 - 1  # that SQL takes; no collection has so many
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
        fast: bool,
    ) -> list[list[Place]]:
        """Return the k nearest documents of each query, ordered by (distance, seq)."""
        k, radius = min(k, LARGEST_LIMIT), None if radius is None else min(radius, state.bits)
        index = fast_of(connection, state) if fast else None
        if fast and index is None:
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
    ) -> list[Place]:
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
        return [Place(*row) for row in connection.execute(statement, bound).fetchall()]

    def near(
        self,
        connection: Connection,
        state: State,
        query: bytes,
        *,
        k: int,
        where: Filter | None = None,
        ef: int,
    ) -> list[Place]:
        """Follow the index as far as `ef` candidates; may return fewer than there are.

        All candidates are fetched, so that of equally near ones the first come first.
        """
        joined, condition, values = _filtered(where)
        ef = max(ef, min(k, MOST_CANDIDATES))
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
        return sorted(Place(int(distance), seq) for distance, seq in rows)[:k]


def _filtered(where: Filter | None) -> tuple[str, str, list[str]]:
    """Return what joins the documents, the condition on them, and its parameters."""
    condition, values = to_condition(where)
    return ("", condition, values) if where is None else (" JOIN documents d USING (seq)", condition, values)
