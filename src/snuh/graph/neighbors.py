"""Nearest neighbours of documents: the hybrid similarity of sparse and dense rows, and the exact search.

The similarity of two documents is the weighted mean of the cosines of their parts: sparse unit rows (TF-IDF)
and any number of dense unit rows (LSA, learnt means).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from numba import prange
from scipy import sparse

from snuh._numba import njit
from snuh.errors import InputError

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int32]
Indices = npt.NDArray[np.int64]
OnProgress = Callable[[float], None]

Search = Literal["auto", "exact", "approximate"]

# Number of documents from which "auto" searches approximately. Both searches take about the same time there.
APPROXIMATE_FROM = 100_000
APPROXIMATE_FROM_WITH_DENSE = 12_000

MIN_DENSE_FRACTION = 0.25  # of non-zeros, above which one dense product is faster than a sparse one
BLOCK_BYTES = 64 * 2**20  # of similarities in one block of the exact search
CALL_ROWS = 20_000  # rows per kernel call, which cannot be interrupted


@dataclass(frozen=True)
class Neighbors:
    """The nearest other documents of each document, best first; -1 pads rows with fewer than k."""

    rows: Integers  # (docs, k)
    similarity: Floats  # (docs, k)
    recall: float | None = None  # fraction of the exact neighbours, on a sample; None for an exact search

    @classmethod
    def empty(cls, docs: int, k: int) -> Neighbors:
        """Return lists without any neighbours, for a search to fill."""
        return cls(np.full((docs, k), -1, dtype=np.int32), np.zeros((docs, k), dtype=np.float32))

    @property
    def summary(self) -> dict[str, object]:
        """The kind of search and, for an approximate one, its recall; ready for JSON."""
        if self.recall is None:
            return {"search": "exact"}
        return {"search": "approximate", "recall": round(self.recall, 4)}

    def adjacency(self) -> sparse.csr_matrix:
        """Return the symmetric graph: an edge where either document lists the other."""
        docs, k = self.rows.shape
        present = self.rows.ravel() >= 0
        heads = np.repeat(np.arange(docs, dtype=np.int32), k)[present]
        tails = self.rows.ravel()[present]
        values = self.similarity.ravel()[present]
        directed = sparse.csr_matrix((values, (heads, tails)), shape=(docs, docs))
        return directed.maximum(directed.T).tocsr()


def gaussian_affinity(similarity: Floats, *, sigma: float) -> Floats:
    """Eq. (5) for unit rows: exp(-|x_i - x_j|^2 / sigma), where |x_i - x_j|^2 = 2 - 2 cos."""
    squared = np.maximum(2.0 - 2.0 * similarity, 0.0)
    affinity: Floats = np.exp(-squared / sigma).astype(np.float32)
    return affinity


@dataclass(frozen=True)
class UniqueRows:
    """The first occurrence of each distinct row, and for every row the previous one equal to it."""

    first: Indices  # (distinct rows,), ascending
    previous: Indices  # (rows,), -1 for a first occurrence

    @property
    def inverse(self) -> Indices:
        """The index into `first` for every row (rows,), as of `numpy.unique`."""
        inverse = np.empty(len(self.previous), dtype=np.int64)
        inverse[self.first] = np.arange(len(self.first))
        for row in np.flatnonzero(self.previous >= 0):
            inverse[row] = inverse[self.previous[row]]
        return inverse


def find_unique_rows(X: sparse.csr_matrix) -> UniqueRows:
    """Find the distinct rows; rows that are equal to six decimals count as duplicates."""
    rounded = np.rint(X.data * 1e6).astype(np.int32)
    last: dict[bytes, int] = {}
    previous = np.full(X.shape[0], -1, dtype=np.int64)
    for row in range(X.shape[0]):
        part = slice(X.indptr[row], X.indptr[row + 1])
        key = X.indices[part].tobytes() + rounded[part].tobytes()
        previous[row] = last.get(key, -1)
        last[key] = row
    return UniqueRows(np.flatnonzero(previous < 0), previous)


@dataclass(frozen=True)
class DensePart:
    """Dense unit rows of the documents and their weight in the similarity."""

    rows: Floats  # (docs, dims)
    weight: float


@dataclass(frozen=True)
class HybridRows:
    """Rows with similarity `sparse_weight * (sparse product) + (dense product)`."""

    X: sparse.csr_matrix
    sparse_weight: np.float32
    dense: Floats  # (docs, dims), multiplied by the square roots of their weights; dims may be 0
    nonempty: npt.NDArray[np.bool_]  # (docs,); the others have no neighbours

    def __len__(self) -> int:
        return len(self.nonempty)

    def take(self, rows: Indices) -> HybridRows:
        """Return some of the rows, in the order given."""
        dense = np.ascontiguousarray(self.dense[rows])
        return HybridRows(self.X[rows], self.sparse_weight, dense, self.nonempty[rows])


def combine(X: sparse.csr_matrix, dense_parts: Sequence[DensePart]) -> HybridRows:
    """Combine sparse and dense rows; sparse rows with many non-zeros are converted to dense ones."""
    sparse_weight = 1.0 - sum(part.weight for part in dense_parts)
    parts = [part.rows * np.float32(np.sqrt(part.weight)) for part in dense_parts]
    nonempty = np.diff(X.indptr) > 0
    if X.nnz > MIN_DENSE_FRACTION * X.shape[0] * X.shape[1]:
        parts.append(X.toarray() * np.float32(np.sqrt(sparse_weight)))
        X = sparse.csr_matrix(X.shape, dtype=np.float32)
    dense = np.concatenate(parts, axis=1) if parts else np.zeros((X.shape[0], 0))
    return HybridRows(X, np.float32(sparse_weight), dense.astype(np.float32, copy=False), nonempty)


def exact_search(
    rows: HybridRows, *, k: int, subset: Indices | None = None, on_progress: OnProgress | None = None
) -> Neighbors:
    """Find the k most similar other rows of each row, or of a subset; ties go to the lower row.

    Similarities are computed for a block of rows at a time, so memory does not grow with the square of the
    documents.
    """
    if subset is None:
        subset = np.arange(len(rows))
    neighbors = Neighbors.empty(len(subset), k)
    columns = Columns(rows)
    height = max(1, BLOCK_BYTES // (4 * len(rows)))
    for start in range(0, len(subset), height):
        block = slice(start, min(start + height, len(subset)))
        part = columns.nearest(rows.take(subset[block]), exclude=subset[block], k=k)
        neighbors.rows[block], neighbors.similarity[block] = part.rows, part.similarity
        if on_progress is not None:
            on_progress(block.stop / len(subset))
    return neighbors


class Columns:
    """Rows that blocks of other rows are compared with exhaustively."""

    def __init__(self, rows: HybridRows) -> None:
        self._rows = rows
        self._postings = rows.X.tocsc()
        self._buffer = np.empty(0, dtype=np.float32)

    def nearest(self, block: HybridRows, *, exclude: Indices, k: int) -> Neighbors:
        """Find the k most similar columns of each row of a block, except the column `exclude` of the row."""
        scores = self._scores(block)
        neighbors = Neighbors.empty(len(block), k)
        _select_best(
            scores, exclude, block.nonempty, self._rows.nonempty, neighbors.rows, neighbors.similarity
        )
        return neighbors

    def _scores(self, block: HybridRows) -> Floats:
        size = len(block) * len(self._rows)
        if len(self._buffer) < size:  # reused for the next block
            self._buffer = np.empty(size, dtype=np.float32)
        scores = self._buffer[:size].reshape(len(block), len(self._rows))
        np.matmul(block.dense, self._rows.dense.T, out=scores)
        of_rows = (block.X.indptr, block.X.indices, block.X.data)
        of_columns = (self._postings.indptr, self._postings.indices, self._postings.data)
        _add_sparse_products(scores, block.sparse_weight, *of_rows, *of_columns)
        return scores


def row_ranges(docs: int) -> Iterator[tuple[int, int]]:
    """Return the (start, stop) rows of each call of a kernel; Ctrl-C takes effect between calls."""
    return ((first, min(first + CALL_ROWS, docs)) for first in range(0, docs, CALL_ROWS))


# Kernels are untyped: numba has no type stubs and infers their types from the arguments.
@njit()
def insert(rows, similarity, row, value):  # type: ignore[no-untyped-def]
    """Insert a row into a list ordered by (descending similarity, row), dropping the last if it is full.

    Free slots have similarity 0 and row -1, so only positive similarities are inserted.
    """
    slot = len(rows)
    while slot > 0 and (
        similarity[slot - 1] < value or (similarity[slot - 1] == value and rows[slot - 1] > row)
    ):
        slot -= 1
        if slot + 1 < len(rows):
            rows[slot + 1] = rows[slot]
            similarity[slot + 1] = similarity[slot]
    if slot < len(rows):
        rows[slot] = row
        similarity[slot] = value


@njit(fastmath=True)
def similarity_to(weights, own, other, indptr, indices, data, dense, sparse_weight):  # type: ignore[no-untyped-def]
    """Return the similarity of a document, given its term weights (terms,) and dense row, to another."""
    terms = np.float32(0)
    for p in range(indptr[other], indptr[other + 1]):
        terms += weights[indices[p]] * data[p]
    product = np.float32(0)
    for d in range(len(own)):
        product += own[d] * dense[other, d]
    return sparse_weight * terms + product


@njit(parallel=True)
def _add_sparse_products(  # type: ignore[no-untyped-def]
    scores, sparse_weight, indptr, indices, data, post_indptr, post_rows, post_data
):
    for r in prange(scores.shape[0]):
        row_scores = scores[r]
        for p in range(indptr[r], indptr[r + 1]):
            weight = sparse_weight * data[p]
            term = indices[p]
            for q in range(post_indptr[term], post_indptr[term + 1]):
                row_scores[post_rows[q]] += weight * post_data[q]


@njit(parallel=True)
def _select_best(scores, exclude, row_nonempty, column_nonempty, rows, similarity):  # type: ignore[no-untyped-def]
    k = rows.shape[1]
    for r in prange(scores.shape[0]):
        if not row_nonempty[r]:
            continue
        row_scores = scores[r]
        row_scores[exclude[r]] = 0.0
        lowest = np.float32(0.0)
        for other in range(row_scores.shape[0]):
            if row_scores[other] > lowest and column_nonempty[other]:
                insert(rows[r], similarity[r], other, row_scores[other])
                lowest = similarity[r, k - 1]


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
        from snuh.graph.approximate import approximate_search

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
