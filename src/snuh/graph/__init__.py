"""The k-nearest-neighbour graph of the documents, by exact or approximate search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from scipy import sparse

from snuh.errors import InputError
from snuh.graph.approximate import approximate_search
from snuh.graph.neighbors import (
    DensePart,
    HybridRows,
    Neighbors,
    OnProgress,
    UniqueRows,
    combine,
    exact_search,
    find_unique_rows,
    gaussian_affinity,
)

__all__ = [
    "DensePart",
    "Neighbors",
    "Search",
    "UniqueRows",
    "find_unique_rows",
    "gaussian_affinity",
    "nearest_neighbors",
]

Search = Literal["auto", "exact", "approximate"]

# Number of documents from which "auto" searches approximately. Both searches take about the same time there.
APPROXIMATE_FROM = 100_000
APPROXIMATE_FROM_WITH_DENSE = 12_000


def nearest_neighbors(
    X: sparse.csr_matrix,
    *,
    k: int,
    dense_parts: Sequence[DensePart] = (),
    search: Search = "auto",
    rng: np.random.Generator | None = None,
    on_progress: OnProgress | None = None,
) -> Neighbors:
    """Find the k most similar other documents of every document.

    Documents with equal rows are searched once: the first has the neighbours, each duplicate only the
    duplicate before it. Duplicates therefore neither displace real neighbours nor create hubs. Only positive
    similarities count, so an empty document has no neighbours. Ties go to the lower row.

    Args:
        X: rows of unit length, or empty.
        k: neighbours per document, at least 1.
        dense_parts: dense unit rows of the same documents; the sparse rows have the rest of the weight.
        search: "exact" compares all documents; "approximate" does not, and measures its recall on a sample;
            "auto" is exact for few documents.
        rng: for the approximate search; the same seed gives the same neighbours.
        on_progress: called with the fraction of the work done.
    """
    if k < 1:
        raise InputError(f"neighbors must be at least 1, got {k}")
    unique = find_unique_rows(X)
    distinct = [DensePart(part.rows[unique.first], part.weight) for part in dense_parts]
    hybrid = combine(X[unique.first], distinct)
    if _is_approximate(search, hybrid):
        part = approximate_search(hybrid, k=k, rng=rng or np.random.default_rng(0), on_progress=on_progress)
    else:
        part = exact_search(hybrid, k=k, on_progress=on_progress)
    neighbors = Neighbors.empty(X.shape[0], k)
    neighbors.rows[unique.first] = np.where(part.rows >= 0, unique.first[part.rows], -1)
    neighbors.similarity[unique.first] = part.similarity
    duplicates = np.flatnonzero((unique.previous >= 0) & (np.diff(X.indptr) > 0))
    neighbors.rows[duplicates, 0] = unique.previous[duplicates]
    neighbors.similarity[duplicates, 0] = 1.0
    return Neighbors(neighbors.rows, neighbors.similarity, part.recall)


def _is_approximate(search: Search, hybrid: HybridRows) -> bool:
    if search == "auto":
        has_dense = hybrid.dense.shape[1] > 0
        return len(hybrid) >= (APPROXIMATE_FROM_WITH_DENSE if has_dense else APPROXIMATE_FROM)
    if search not in ("exact", "approximate"):
        raise InputError(f'search must be "auto", "exact" or "approximate", got "{search}"')
    return search == "approximate"
