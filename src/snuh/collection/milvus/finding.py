"""The nearest documents, exactly: Milvus gives the nearest in any order of ties, and at most 16,384 of them.

So more are fetched than are wanted, until the last distance among the wanted is complete: then the ties can
be put in the order of insertion. Where even the most are too few (many equal codes, or a filter that Milvus
cannot work out), the seqs are halved, and each half is searched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from snuh.collection.milvus.entities import record_of
from snuh.collection.milvus.expressions import condition_of
from snuh.collection.milvus.rows import HAS_CODE, MAX_ABOUTS, Rows
from snuh.filters import Filter, matches

MAX_HITS = 16_384  # that Milvus gives for one query
SPARE_HITS, GROWTH = 64, 16
MAX_HITS_AT_ONCE = 100_000  # of all queries of one request
LISTED = ("size", "pieces")  # what a filter needs, beside what documents are about
ALL_LISTS = 65_536  # more than an index can have


class Found(NamedTuple):
    """A document near a query; tuples are ordered as the answer is."""

    distance: int
    seq: int
    key: str
    size: int


@dataclass(frozen=True, slots=True)
class Seek:
    """What to look for."""

    rows: Rows
    k: int
    radius: int | None
    where: Filter | None
    probes: int  # lists of the index that are read
    next_seq: int

    def nearest(self, queries: NDArray[np.uint8]) -> list[list[Found]]:
        """Return the nearest documents of each query, ordered by (distance, seq)."""
        limit = min(self.k + SPARE_HITS, MAX_HITS)
        group = max(1, MAX_HITS_AT_ONCE // limit)
        answers: list[list[Found]] = []
        for start in range(0, len(queries), group):
            part = [query.tobytes() for query in queries[start : start + group]]
            whole = Window(0, self.next_seq - 1, self.radius)
            first = self._ask(part, whole, limit)
            answers += [
                self._complete(query, whole, limit, hits) for query, hits in zip(part, first, strict=True)
            ]
        return answers

    def _complete(self, query: bytes, window: Window, limit: int, hits: list[dict[str, Any]]) -> list[Found]:
        """Return the nearest in a window, given the first `limit` hits in it."""
        while True:
            is_all = len(hits) < limit
            last = int(hits[-1]["distance"]) if hits else 0
            sure = hits if is_all else [hit for hit in hits if int(hit["distance"]) < last]
            found = [
                one for one in self._allowed(sure) if window.radius is None or one.distance <= window.radius
            ]
            reached = window.radius is not None and last > window.radius
            if is_all or reached or len(found) >= self.k:
                return sorted(found)[: self.k]
            if limit == MAX_HITS:
                break
            limit = min(limit * GROWTH, MAX_HITS)
            (hits,) = self._ask([query], window, limit)
        nearer: list[Found] = []
        for half in window.halves():
            if len(nearer) >= self.k:  # later documents must be nearer than all of these
                half = half._replace(radius=nearer[-1].distance - 1)
            if half.radius is not None and half.radius < 0:
                break
            (hits,) = self._ask([query], half, MAX_HITS)
            nearer = sorted(nearer + self._complete(query, half, MAX_HITS, hits))[: self.k]
        return nearer

    def _ask(self, queries: Sequence[bytes], window: Window, limit: int) -> list[list[dict[str, Any]]]:
        condition = HAS_CODE
        if self.where is not None and (known := condition_of(self.where)) is not None:
            condition += f" and {known}"
        if (window.after, window.last) != (0, self.next_seq - 1):
            condition += f" and seq > {window.after} and seq <= {window.last}"
        fields = ["seq", "size"] if self.where is None else ["seq", *LISTED]
        if self.where is not None and limit * len(queries) <= MAX_ABOUTS:
            fields.append("about")
        while True:
            answers = self.rows.connection.search(
                self.rows.facts.documents,
                queries,
                field="code",
                condition=condition,
                fields=fields,
                limit=limit,
                probes=self.probes,
                as_of=self.rows.as_of,
            )
            if any(answers) or self.rows.is_ready():
                break
        return [
            [{**hit["entity"], "key": hit["id"], "distance": hit["distance"]} for hit in hits]
            for hits in answers
        ]

    def _allowed(self, hits: Sequence[dict[str, Any]]) -> list[Found]:
        found = [Found(round(hit["distance"]), int(hit["seq"]), hit["key"], int(hit["size"])) for hit in hits]
        if self.where is None:
            return found
        lets = allowed(self.rows, self.where, hits)
        return [one for one in found if one.key in lets]


class Window(NamedTuple):
    """The documents that a search looks at: seqs above `after` up to `last`, not further than `radius`."""

    after: int
    last: int
    radius: int | None

    def halves(self) -> tuple[Window, Window]:
        """Return the earlier and the later half."""
        middle = (self.after + self.last) // 2
        return self._replace(last=middle), self._replace(after=middle)


def allowed(rows: Rows, where: Filter, listed: Sequence[dict[str, Any]]) -> set[str]:
    """Return the keys that a filter lets through, of rows listed with `LISTED`, and perhaps `about`."""
    large = [row for row in listed if row["pieces"]]
    small = [row for row in listed if not row["pieces"]]
    abouts = {row["key"]: row["about"] for row in small if "about" in row}
    abouts |= rows.abouts([row["key"] for row in small if "about" not in row])
    found = {key for key, about in abouts.items() if matches(where, _record(about))}
    return found | {
        row["key"] for row, document in rows.documents(large) if matches(where, record_of(document))
    }


def _record(about: dict[str, Any]) -> dict[str, object]:
    return {**about["metadata"], "id": about["id"], "split": about["split"], "labels": about["labels"]}
