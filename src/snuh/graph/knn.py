"""The k nearest neighbours of every document, whichever way they are searched for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from scipy import sparse

from snuh.errors import InputError
from snuh.graph.approximate import search_some
from snuh.graph.neighbors import DensePart, JoinedRows, Neighbors, group_equal_rows, join, search_all

Search = Literal["auto", "exact", "approximate"]

# Documents from which on "auto" does not compare all. There the approximate search is about as fast, within
# a second or so, and with more it is faster.
MANY = 100_000
MANY_WITH_DENSE = 12_000


def nearest_neighbors(
    X: sparse.csr_matrix,
    *,
    k: int,
    beside: Sequence[DensePart] = (),
    search: Search = "auto",
    rng: np.random.Generator | None = None,
    on_progress: Callable[[float], None] | None = None,
) -> Neighbors:
    """Find the k most similar other documents of every document.

    Documents with equal rows share one search: the first of its kind has the neighbours, each copy only the
    copy before it. So copies do not push real neighbours out of lists, nor make a hub of anyone. Only
    positive similarities make neighbours, so an empty document has none. Ties go to the lower row.

    Args:
        X: rows of unit length, or empty.
        k: neighbours per document, at least 1.
        beside: more unit rows of the same documents; the sparse rows weigh what they leave of 1.
        search: "exact" compares all documents, "approximate" does not, and measures what it found of the
            exact neighbours on a sample; "auto" is exact for few.
        rng: of the approximate search; the same seed gives the same neighbours.
        on_progress: called with the share of rows done.
    """
    if k < 1:
        raise InputError(f"neighbors must be at least 1, got {k}")
    kinds = group_equal_rows(X)
    distinct = [DensePart(part.rows[kinds.first], part.weight) for part in beside]
    joined = join(X[kinds.first], distinct)
    if _is_approximate(search, joined):
        found = search_some(joined, k=k, rng=rng or np.random.default_rng(0), on_progress=on_progress)
    else:
        found = search_all(joined, k=k, on_progress=on_progress)
    rows = np.full((X.shape[0], k), -1, dtype=np.int32)
    similarity = np.zeros((X.shape[0], k), dtype=np.float32)
    rows[kinds.first] = np.where(found.rows >= 0, kinds.first[found.rows], -1)
    similarity[kinds.first] = found.similarity
    copies = np.flatnonzero((kinds.previous >= 0) & (np.diff(X.indptr) > 0))
    rows[copies, 0] = kinds.previous[copies]
    similarity[copies, 0] = 1.0
    return Neighbors(rows, similarity, found.recall)


def _is_approximate(search: Search, joined: JoinedRows) -> bool:
    if search == "auto":
        return len(joined) >= (MANY_WITH_DENSE if joined.dense.shape[1] else MANY)
    if search not in ("exact", "approximate"):
        raise InputError(f'search must be "auto", "exact" or "approximate", got "{search}"')
    return search == "approximate"
