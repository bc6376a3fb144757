"""Searches of the codes, and the index of approximate ones.

Milvus returns the nearest rows with ties in any order, and at most 16,384 of them. So some more are requested
than are wanted, and sorted. Where a filter that Milvus cannot evaluate leaves too few, or more are wanted,
ranges of the order of insertion are searched one after the other.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from snuh.collection.backend import Match, recall_of
from snuh.collection.milvus.schema import FACT, IS_SEARCHABLE, NLIST, filter_expression, filter_record
from snuh.collection.milvus.table import MAX_ROWS, Table
from snuh.collection.results import IndexInfo
from snuh.errors import CollectionError
from snuh.filters import Filter, matches

SPARE_HITS, GROWTH = 64, 16
MAX_HITS_PER_REQUEST = 100_000  # of all queries together
ALL_LISTS = 65_536  # nprobe of an exact search: more lists than an index can have
INDEX_KEY = "index"
MIN_INDEXED = 1_024  # rows of a segment; Milvus does not index smaller ones
INDEXING_SECONDS, POLL_SECONDS = 3_600.0, 0.2


@dataclass(frozen=True, slots=True)
class Search:
    """A search for the k nearest documents of a table."""

    table: Table
    k: int
    radius: int | None = None
    where: Filter | None = None
    nprobe: int = ALL_LISTS  # lists of the index to read

    def nearest(self, queries: NDArray[np.uint8]) -> list[list[Match]]:
        """Return the nearest documents of each query, ordered by (distance, seq)."""
        limit = min(self.k + SPARE_HITS, MAX_ROWS)
        size = max(1, MAX_HITS_PER_REQUEST // limit)
        results = []
        for start in range(0, len(queries), size):
            codes = [query.tobytes() for query in queries[start : start + size]]
            first = self._search(codes, self._expression, limit)
            results += [self._complete(code, hits, limit) for code, hits in zip(codes, first, strict=True)]
        return results

    def _complete(self, code: bytes, hits: list[Match], limit: int) -> list[Match]:
        """Return the nearest documents, given the first `limit` hits, of which a filter may leave fewer."""
        while len(found := self._allowed(hits)) < self.k and len(hits) == limit:
            if self.radius is not None and hits[-1].distance > self.radius:
                break
            if limit == MAX_ROWS:
                return self._by_ranges(code)
            limit = min(limit * GROWTH, MAX_ROWS)
            (hits,) = self._search([code], self._expression, limit)
        return sorted(found)[: self.k]

    def _by_ranges(self, code: bytes) -> list[Match]:
        found: list[Match] = []
        for part in self.table.ranges(self._expression, size=MAX_ROWS):
            self.table.seen.clear()  # a filter may have to read all documents
            found += self._allowed(self._search([code], part, MAX_ROWS)[0])
        return sorted(found)[: self.k]

    @property
    def _expression(self) -> str:
        return IS_SEARCHABLE + filter_expression(self.where)

    def _search(self, codes: Sequence[bytes], expression: str, limit: int) -> list[list[Match]]:
        results = self.table.connection.call(
            "search",
            self.table.name,
            data=list(codes),
            anns_field="code",
            filter=expression,
            output_fields=["seq"],
            limit=limit,
            search_params={"metric_type": "HAMMING", "params": {"nprobe": self.nprobe}},
            **self.table.consistency,
        )
        return [[Match(round(hit["distance"]), hit["entity"]["seq"]) for hit in hits] for hits in results]

    def _allowed(self, hits: Sequence[Match]) -> list[Match]:
        """Return the hits within the radius that the filter lets through."""
        hits = [hit for hit in hits if self.radius is None or hit.distance <= self.radius]
        if (where := self.where) is None:
            return hits
        self.table.read(hit.seq for hit in hits)
        seen = self.table.seen
        return [hit for hit in hits if hit.seq in seen and matches(where, filter_record(seen[hit.seq][1]))]


def build_index(table: Table, queries: NDArray[np.uint8], *, k: int, recall: float) -> IndexInfo:
    """Wait for the index of Milvus, and store the smallest power of two of lists that reaches the recall."""
    documents, reached, nprobe = table.count(IS_SEARCHABLE), 1.0, NLIST
    words = f"all codes are read: Milvus indexes no fewer than {MIN_INDEXED:,} documents"
    if documents >= MIN_INDEXED:
        _wait_for_index(table)
        exact, nprobe = Search(table, k).nearest(queries), 1
        while (
            reached := recall_of(exact, Search(table, k, nprobe=nprobe).nearest(queries))
        ) < recall and nprobe < NLIST:
            nprobe *= 2
        words = f"{nprobe} of up to {NLIST:,} lists are read in each segment"
    facts = json.dumps([nprobe, words, k, reached, documents])
    table.upsert([{"key": INDEX_KEY, "kind": FACT, "text": facts}])
    return IndexInfo({"lists": NLIST, "read": nprobe}, words, k, reached, documents)


def read_index(table: Table) -> IndexInfo | None:
    """Return what `build_index` has stored; None where it was not called."""
    if not (texts := table.texts([INDEX_KEY])):
        return None
    nprobe, words, k, recall, documents = json.loads(texts[INDEX_KEY])
    return IndexInfo({"lists": NLIST, "read": nprobe}, words, k, recall, documents)


def _wait_for_index(table: Table) -> None:
    """Wait until all codes are indexed, and searches use the index."""
    table.connection.call("flush", table.name)
    deadline = time.monotonic() + INDEXING_SECONDS
    while time.monotonic() < deadline:
        index = table.connection.call("describe_index", table.name, "code")
        segments = table.connection.call("get_query_segment_info", table.name)
        loaded = sum(int(segment.num_rows) for segment in segments)
        if not index["pending_index_rows"] and loaded >= int(index["total_rows"]):
            return
        time.sleep(POLL_SECONDS)
    raise CollectionError(
        f"{table.connection.url.shown}: Milvus is still building its index: try again later"
    )
