"""The neighbour graph: exact cosine k nearest neighbours, computed in blocks of rows.

The similarity of two documents is the cosine of their joined features: sparse unit rows (TF-IDF), optionally
with dense unit rows beside them (LSA, learnt means), each part with a weight. It is then the weighted mean of
the parts' cosines.

One block of rows needs `block_rows * n` floats; no n x n array is ever made, and no dense n x terms array of
sparse rows (rows that are mostly filled are multiplied as what they are).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import prange
from scipy import sparse

from snuh.compiling import compiled
from snuh.errors import InputError

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int32]

BLOCK_BYTES = 64 * 2**20
DENSE_FROM = 0.25  # share of non-zeros above which one dense product beats many sparse ones


@dataclass(frozen=True)
class Neighbors:
    """For each document its nearest others, best first; -1 fills rows that have fewer than k."""

    rows: Integers  # (docs, k)
    similarity: Floats  # (docs, k)

    def adjacency(self) -> sparse.csr_matrix:
        """The symmetric graph: an edge where either document lists the other, its value their similarity."""
        docs, k = self.rows.shape
        present = self.rows.ravel() >= 0
        heads = np.repeat(np.arange(docs, dtype=np.int32), k)[present]
        tails = self.rows.ravel()[present]
        values = self.similarity.ravel()[present]
        directed = sparse.csr_matrix((values, (heads, tails)), shape=(docs, docs))
        return directed.maximum(directed.T).tocsr()


@dataclass(frozen=True)
class DensePart:
    """Dense unit rows beside the sparse ones, and what they weigh in the similarity."""

    rows: Floats  # (docs, dims)
    weight: float


def nearest_neighbors(
    X: sparse.csr_matrix,
    *,
    k: int,
    beside: Sequence[DensePart] = (),
    on_progress: Callable[[float], None] | None = None,
) -> Neighbors:
    """Find the k most similar other documents of every document, exactly.

    Documents with equal rows share one search: the first of its kind has the neighbours, each copy only the
    copy before it. So copies do not push real neighbours out of lists, nor make a hub of anyone. Only
    positive similarities make neighbours, so an empty document has none. Ties go to the lower row.

    Args:
        X: rows of unit length, or empty.
        k: neighbours per document, at least 1.
        beside: more unit rows of the same documents; the sparse rows weigh what they leave of 1.
        on_progress: called with the share of rows done.
    """
    if k < 1:
        raise InputError(f"neighbors must be at least 1, got {k}")
    kinds = group_equal_rows(X)
    share = 1.0 - sum(part.weight for part in beside)
    parts = [part.rows[kinds.first] * np.float32(np.sqrt(part.weight)) for part in beside]
    found = _search_distinct(X[kinds.first], np.float32(share), parts, k, on_progress)
    rows = np.full((X.shape[0], k), -1, dtype=np.int32)
    similarity = np.zeros((X.shape[0], k), dtype=np.float32)
    rows[kinds.first] = np.where(found.rows >= 0, kinds.first[found.rows], -1)
    similarity[kinds.first] = found.similarity
    copies = np.flatnonzero((kinds.previous >= 0) & (np.diff(X.indptr) > 0))
    rows[copies, 0] = kinds.previous[copies]
    similarity[copies, 0] = 1.0
    return Neighbors(rows, similarity)


def gaussian_affinity(similarity: Floats, *, sigma: float) -> Floats:
    """Eq. (5) for unit rows: exp(-|x_i - x_j|^2 / sigma), where |x_i - x_j|^2 = 2 - 2 cos."""
    squared = np.maximum(2.0 - 2.0 * similarity, 0.0)
    affinity: Floats = np.exp(-squared / sigma).astype(np.float32)
    return affinity


@dataclass(frozen=True)
class Kinds:
    """Which rows are equal: the first row of each kind, and for every row the one before it of its kind."""

    first: npt.NDArray[np.int64]  # (kinds,) in ascending order
    previous: npt.NDArray[np.int64]  # (rows,), -1 for the first of a kind

    @property
    def kind(self) -> npt.NDArray[np.int64]:
        """The kind of every row (rows,)."""
        kind = np.empty(len(self.previous), dtype=np.int64)
        kind[self.first] = np.arange(len(self.first))
        for row in np.flatnonzero(self.previous >= 0):
            kind[row] = kind[self.previous[row]]
        return kind


def group_equal_rows(X: sparse.csr_matrix) -> Kinds:
    """Find the rows that are equal to six decimals, so that rounding does not tell copies apart."""
    rounded = np.rint(X.data * 1e6).astype(np.int32)
    last: dict[bytes, int] = {}
    previous = np.full(X.shape[0], -1, dtype=np.int64)
    for row in range(X.shape[0]):
        part = slice(X.indptr[row], X.indptr[row + 1])
        key = X.indices[part].tobytes() + rounded[part].tobytes()
        previous[row] = last.get(key, -1)
        last[key] = row
    return Kinds(np.flatnonzero(previous < 0), previous)


def _search_distinct(
    X: sparse.csr_matrix,
    share: np.float32,
    parts: list[Floats],
    k: int,
    on_progress: Callable[[float], None] | None,
) -> Neighbors:
    docs = X.shape[0]
    is_dense = X.nnz > DENSE_FROM * docs * X.shape[1]
    if is_dense:
        parts = [*parts, X.toarray() * np.sqrt(share)]
    dense = np.concatenate(parts, axis=1) if parts else None
    postings = None if is_dense else X.tocsc()
    rows = np.full((docs, k), -1, dtype=np.int32)
    similarity = np.zeros((docs, k), dtype=np.float32)
    height = max(1, min(docs, BLOCK_BYTES // (4 * docs)))
    block = np.empty((height, docs), dtype=np.float32)
    for start in range(0, docs, height):
        stop = min(start + height, docs)
        scores = block[: stop - start]
        if dense is None:
            scores[:] = 0.0
        else:
            np.matmul(dense[start:stop], dense.T, out=scores)
        if postings is not None:
            rows_of_x, columns_of_x = (
                (X.indptr, X.indices, X.data),
                (postings.indptr, postings.indices, postings.data),
            )
            _add_sparse_products(scores, start, share, *rows_of_x, *columns_of_x)
        _select_best(scores, start, X.indptr, rows[start:stop], similarity[start:stop])
        if on_progress is not None:
            on_progress(stop / docs)
    return Neighbors(rows, similarity)


@compiled(parallel=True)
def _add_sparse_products(  # type: ignore[no-untyped-def]
    scores, start, share, indptr, indices, data, post_indptr, post_rows, post_data
):
    for r in prange(scores.shape[0]):
        line = scores[r]
        for p in range(indptr[start + r], indptr[start + r + 1]):
            weight = share * data[p]
            term = indices[p]
            for q in range(post_indptr[term], post_indptr[term + 1]):
                line[post_rows[q]] += weight * post_data[q]


@compiled(parallel=True)
def _select_best(scores, start, indptr, rows, similarity):  # type: ignore[no-untyped-def]
    k = rows.shape[1]
    for r in prange(scores.shape[0]):
        own = start + r
        if indptr[own] == indptr[own + 1]:
            continue
        line = scores[r]
        line[own] = 0.0
        bar = np.float32(0.0)
        for other in range(line.shape[0]):
            value = line[other]
            if value > bar and indptr[other] != indptr[other + 1]:
                place = k - 1
                while place > 0 and similarity[r, place - 1] < value:
                    similarity[r, place] = similarity[r, place - 1]
                    rows[r, place] = rows[r, place - 1]
                    place -= 1
                similarity[r, place] = value
                rows[r, place] = other
                bar = similarity[r, k - 1]
