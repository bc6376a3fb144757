"""What a search for neighbours takes and gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import prange
from scipy import sparse

from snuh._numba import njit

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Neighbors:
    """For each document its nearest others, best first; -1 fills rows that have fewer than k."""

    rows: Integers  # (docs, k)
    similarity: Floats  # (docs, k)
    recall: float | None = None  # share of the exact neighbours, measured on a sample; None: all, by design

    @property
    def facts(self) -> dict[str, object]:
        """How the neighbours were searched for, and for an approximate search its recall; ready for JSON."""
        if self.recall is None:
            return {"search": "exact"}
        return {"search": "approximate", "recall": round(self.recall, 4)}

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


def gaussian_affinity(similarity: Floats, *, sigma: float) -> Floats:
    """Eq. (5) for unit rows: exp(-|x_i - x_j|^2 / sigma), where |x_i - x_j|^2 = 2 - 2 cos."""
    squared = np.maximum(2.0 - 2.0 * similarity, 0.0)
    affinity: Floats = np.exp(-squared / sigma).astype(np.float32)
    return affinity


# Documents by sparse rows and dense rows at once.
#
# The similarity of two documents is the cosine of their joined features: sparse unit rows (TF-IDF),
# optionally
# with dense unit rows beside them (LSA, learnt means), each part with a weight. It is then the weighted mean
# of
# the parts' cosines.

DENSE_FROM = 0.25  # share of non-zeros above which one dense product beats many sparse ones

Places = npt.NDArray[np.int64] | slice


@dataclass(frozen=True)
class JoinedRows:
    """Rows whose similarity is `share` times the product of the sparse ones plus that of the dense ones."""

    X: sparse.csr_matrix
    share: np.float32
    dense: Floats  # (docs, dims), times the roots of their weights; no columns where there are none
    filled: npt.NDArray[np.bool_]  # (docs,); the others have no neighbours

    def __len__(self) -> int:
        return len(self.filled)

    def take(self, places: Places) -> JoinedRows:
        """Return some of the rows, in the order given."""
        dense = np.ascontiguousarray(self.dense[places])
        return JoinedRows(self.X[places], self.share, dense, self.filled[places])


def join(X: sparse.csr_matrix, beside: Sequence[DensePart]) -> JoinedRows:
    """Join sparse rows with those beside them; sparse rows that are mostly filled become dense ones."""
    share = 1.0 - sum(part.weight for part in beside)
    parts = [part.rows * np.float32(np.sqrt(part.weight)) for part in beside]
    filled = np.diff(X.indptr) > 0
    if X.nnz > DENSE_FROM * X.shape[0] * X.shape[1]:
        parts.append(X.toarray() * np.float32(np.sqrt(share)))
        X = sparse.csr_matrix(X.shape, dtype=np.float32)
    dense = np.concatenate(parts, axis=1) if parts else np.zeros((X.shape[0], 0))
    return JoinedRows(X, np.float32(share), dense.astype(np.float32, copy=False), filled)


# Documents whose rows are equal.


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


# What the kernels of the approximate search share: lists of the best, the similarity of two documents.

SPAN = 20_000  # rows of one call, which Ctrl-C waits for


def spans(docs: int) -> Iterator[tuple[int, int]]:
    """Return the first row of each call of a kernel, and the one after its last."""
    return ((first, min(first + SPAN, docs)) for first in range(0, docs, SPAN))


# numba has no type stubs, and the kernels' types are those of their arguments.
@njit()
def insert(rows, similarity, row, value):  # type: ignore[no-untyped-def]
    """Put a row into a list ordered by (falling similarity, row), if it is good enough.

    Empty places have similarity 0 and row -1, so only what is above 0 is good enough.
    """
    place = len(rows)
    while place > 0 and (
        similarity[place - 1] < value or (similarity[place - 1] == value and rows[place - 1] > row)
    ):
        place -= 1
        if place + 1 < len(rows):
            rows[place + 1] = rows[place]
            similarity[place + 1] = similarity[place]
    if place < len(rows):
        rows[place] = row
        similarity[place] = value


@njit(fastmath=True)
def similarity_to(line, own, other, indptr, indices, data, dense, share):  # type: ignore[no-untyped-def]
    """Return the similarity of a document, as its terms' weights (terms,) and dense row, to another."""
    terms = np.float32(0)
    for p in range(indptr[other], indptr[other + 1]):
        terms += line[indices[p]] * data[p]
    product = np.float32(0)
    for d in range(len(own)):
        product += own[d] * dense[other, d]
    return share * terms + product


# The exact search: every document is compared with every other, a block of rows at a time.
#
# One block of rows needs `block_rows * n` floats; no n x n array is ever made, and no dense n x terms array
# of
# sparse rows (rows that are mostly filled are multiplied as what they are).

BLOCK_BYTES = 64 * 2**20


def search_all(
    rows: JoinedRows,
    *,
    k: int,
    places: npt.NDArray[np.int64] | None = None,
    on_progress: Callable[[float], None] | None = None,
) -> Neighbors:
    """Find the k most similar other rows of each row, or only of some places; ties go to the lower row."""
    if places is None:
        places = np.arange(len(rows))
    found = np.full((len(places), k), -1, dtype=np.int32)
    similarity = np.zeros((len(places), k), dtype=np.float32)
    columns = Columns(rows)
    height = max(1, BLOCK_BYTES // (4 * len(rows)))
    for start in range(0, len(places), height):
        block = slice(start, min(start + height, len(places)))
        part = columns.nearest(rows.take(places[block]), own=places[block], k=k)
        found[block], similarity[block] = part.rows, part.similarity
        if on_progress is not None:
            on_progress(block.stop / len(places))
    return Neighbors(found, similarity)


class Columns:
    """Rows that others are compared with, all of them each time."""

    def __init__(self, rows: JoinedRows) -> None:
        self._rows = rows
        self._postings = rows.X.tocsc()
        self._room = np.empty(0, dtype=np.float32)

    def nearest(self, block: JoinedRows, *, own: npt.NDArray[np.int64], k: int) -> Neighbors:
        """Find the k most similar columns of each row of a block, itself left out: it is the column `own`."""
        scores = self._scores(block)
        found = np.full((len(block), k), -1, dtype=np.int32)
        similarity = np.zeros((len(block), k), dtype=np.float32)
        _select_best(scores, own, block.filled, self._rows.filled, found, similarity)
        return Neighbors(found, similarity)

    def _scores(self, block: JoinedRows) -> Floats:
        size = len(block) * len(self._rows)
        if len(self._room) < size:  # used again for the next block
            self._room = np.empty(size, dtype=np.float32)
        scores = self._room[:size].reshape(len(block), len(self._rows))
        np.matmul(block.dense, self._rows.dense.T, out=scores)
        of_rows = (block.X.indptr, block.X.indices, block.X.data)
        of_columns = (self._postings.indptr, self._postings.indices, self._postings.data)
        _add_sparse_products(scores, block.share, *of_rows, *of_columns)
        return scores


@njit(parallel=True)
def _add_sparse_products(  # type: ignore[no-untyped-def]
    scores, share, indptr, indices, data, post_indptr, post_rows, post_data
):
    for r in prange(scores.shape[0]):
        line = scores[r]
        for p in range(indptr[r], indptr[r + 1]):
            weight = share * data[p]
            term = indices[p]
            for q in range(post_indptr[term], post_indptr[term + 1]):
                line[post_rows[q]] += weight * post_data[q]


@njit(parallel=True)
def _select_best(scores, own, row_filled, column_filled, rows, similarity):  # type: ignore[no-untyped-def]
    k = rows.shape[1]
    for r in prange(scores.shape[0]):
        if not row_filled[r]:
            continue
        line = scores[r]
        line[own[r]] = 0.0
        bar = np.float32(0.0)
        for other in range(line.shape[0]):
            value = line[other]
            if value > bar and column_filled[other]:
                place = k - 1
                while place > 0 and similarity[r, place - 1] < value:
                    similarity[r, place] = similarity[r, place - 1]
                    rows[r, place] = rows[r, place - 1]
                    place -= 1
                similarity[r, place] = value
                rows[r, place] = other
                bar = similarity[r, k - 1]
