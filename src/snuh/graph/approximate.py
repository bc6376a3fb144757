"""The approximate search: a start that compares each document with some, then rounds that ask the neighbours.

The work for one document does not grow with the documents. What was found of the exact neighbours is measured
on a sample.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import prange
from scipy import sparse

from snuh._numba import njit, usable_processors
from snuh.graph.neighbors import (
    Columns,
    Floats,
    JoinedRows,
    Neighbors,
    insert,
    search_all,
    similarity_to,
    spans,
)
from snuh.graph.nn_descent import REACH, Compared, Lists, refine

# A start for the approximate search of documents with dense rows: those of nearby cells are compared.
#
# Cells are clusters of the dense rows (spherical k-means, learnt on a sample). The documents of a cell are
# compared with all those of the nearest cells, by the whole similarity. How many that are does not grow with
# the documents, so neither does the work for one of them.

CELL_DOCS = 200  # documents of a cell, on average
COLUMNS = 10_000  # documents that each is compared with, at least
MAX_CELL = 4 * CELL_DOCS  # larger ones are cut
SAMPLE_PER_CELL = 40
ROUNDS = 6

Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Cells:
    """Documents in the order of their cells, and which cells each cell is compared with."""

    order: Places  # (docs,), the row of each
    starts: Places  # (cells + 1,), places in the order
    near: list[Places]  # of each cell, itself first

    @property
    def of_places(self) -> npt.NDArray[np.int32]:
        """The cell of each place in the order (docs,)."""
        return np.repeat(np.arange(len(self.near), dtype=np.int32), np.diff(self.starts))


def make_cells(dense: Floats, *, rng: np.random.Generator) -> Cells:
    """Cluster dense rows, and choose for each cell as many near ones as have enough documents."""
    centroids = _find_centroids(dense, count=max(1, len(dense) // CELL_DOCS), rng=rng)
    assignments = nearest_centroids(dense, centroids)
    order = np.argsort(assignments, kind="stable")
    firsts = np.searchsorted(assignments[order], np.arange(len(centroids)))
    pieces = (np.arange(len(order)) - firsts[assignments[order]]) // MAX_CELL
    keys, starts = np.unique(assignments[order] * (len(order) + 1) + pieces, return_index=True)
    centroids = centroids[keys // (len(order) + 1)]
    starts = np.append(starts, len(order))
    return Cells(order, starts, _near_cells(centroids, np.diff(starts)))


def compare_cells(
    rows: JoinedRows, cells: Cells, *, k: int, on_progress: Callable[[float], None] | None
) -> Neighbors:
    """Find the k nearest of each row among those of the near cells; the rows are in the order of cells."""
    found = np.full((len(rows), k), -1, dtype=np.int32)
    similarity = np.zeros((len(rows), k), dtype=np.float32)
    places = [np.arange(*cells.starts[cell : cell + 2]) for cell in range(len(cells.near))]
    for cell, near in enumerate(cells.near):
        others = np.concatenate([places[other] for other in near])
        own = np.arange(len(places[cell]))  # it is the first among the near ones
        part = Columns(rows.take(others)).nearest(rows.take(places[cell]), own=own, k=k)
        found[places[cell]] = np.where(part.rows >= 0, others[part.rows], -1)
        similarity[places[cell]] = part.similarity
        if on_progress is not None:
            on_progress(cells.starts[cell + 1] / len(rows))
    return Neighbors(found, similarity)


def nearest_centroids(dense: Floats, centroids: Floats) -> Places:
    """Return the number of the centre with the largest product for each row."""
    blocks = range(0, len(dense), 4096)
    return np.concatenate([(dense[b : b + 4096] @ centroids.T).argmax(axis=1) for b in blocks])


def _find_centroids(dense: Floats, *, count: int, rng: np.random.Generator) -> Floats:
    size = min(len(dense), SAMPLE_PER_CELL * count)
    sample = dense[np.sort(rng.choice(len(dense), size=size, replace=False))]
    centroids = sample[rng.choice(size, size=min(count, size), replace=False)]
    for _ in range(ROUNDS):
        assignments = nearest_centroids(sample, centroids)
        shape = (len(centroids), size)
        members = sparse.csr_matrix((np.ones(size, np.float32), (assignments, np.arange(size))), shape=shape)
        sums: Floats = members @ sample
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        centroids = np.where(lengths > 0, sums / np.maximum(lengths, np.finfo(np.float32).tiny), centroids)
    return centroids


def _near_cells(centroids: Floats, sizes: Places) -> list[Places]:
    near = []
    for cell, centre in enumerate(centroids):
        closeness = centroids @ centre
        closeness[cell] = np.inf
        ranked = np.argsort(-closeness, kind="stable")
        enough = np.searchsorted(np.cumsum(sizes[ranked]), COLUMNS) + 1
        near.append(ranked[:enough])
    return near


# A start for the approximate search of sparse rows: documents that a term is important to are compared.
#
# A term's postings are cut to the documents in which it weighs most. How many that are does not grow with the
# documents, so neither does the work for one of them. What the cut postings say is most similar is compared
# by
# the whole similarity.

LONGEST = 300  # documents of a term
CANDIDATES = 60  # documents that are compared with each


def compare_postings(rows: JoinedRows, *, k: int, on_progress: Callable[[float], None] | None) -> Neighbors:
    """Find k documents for each row among those that share important terms with it, nearest first."""
    found = np.full((len(rows), k), -1, dtype=np.int32)
    similarity = np.zeros((len(rows), k), dtype=np.float32)
    postings = cut_postings(rows.X)
    for first, last in spans(len(rows)):
        _compare(
            *(rows.X.indptr, rows.X.indices, rows.X.data),
            *(postings.indptr, postings.indices, postings.data),
            *(rows.share, rows.dense, max(CANDIDATES, k)),
            *(found, similarity, first, last, usable_processors()),
        )
        if on_progress is not None:
            on_progress(last / len(rows))
    return Neighbors(found, similarity)


def cut_postings(X: sparse.csr_matrix) -> sparse.csc_matrix:
    """Return the columns with only their heaviest rows; of equal weights the lower rows stay."""
    columns = X.tocsc()
    terms = np.repeat(np.arange(X.shape[1]), np.diff(columns.indptr))
    ranked = np.lexsort((columns.indices, -columns.data, terms))
    rank: npt.NDArray[np.int64] = np.empty(len(ranked), dtype=np.int64)
    rank[ranked] = np.arange(len(ranked)) - columns.indptr[terms[ranked]]
    kept = rank < LONGEST
    starts = np.append(0, np.cumsum(np.bincount(terms[kept], minlength=X.shape[1])))
    return sparse.csc_matrix((columns.data[kept], columns.indices[kept], starts), shape=X.shape)


@njit(parallel=True)
def _compare(  # type: ignore[no-untyped-def]
    indptr,
    indices,
    data,
    post_indptr,
    post_rows,
    post_data,
    share,
    dense,
    limit,
    rows,
    similarity,
    first,
    last,
    parts,
):
    docs, size = len(rows), last - first
    for part in prange(parts):
        scores = np.zeros(docs, dtype=np.float32)
        touched = np.empty(docs, dtype=np.int32)
        line = np.zeros(len(post_indptr) - 1, dtype=np.float32)
        for row in range(first + part * size // parts, first + (part + 1) * size // parts):
            count = 0
            for p in range(indptr[row], indptr[row + 1]):
                line[indices[p]] = data[p]
                for q in range(post_indptr[indices[p]], post_indptr[indices[p] + 1]):
                    other = post_rows[q]
                    if scores[other] == 0:
                        touched[count] = other
                        count += 1
                    scores[other] += data[p] * post_data[q]
            likely = np.full(limit, -1, dtype=np.int32)
            likely_scores = np.zeros(limit, dtype=np.float32)
            for t in range(count):
                other = touched[t]
                if other != row:
                    insert(likely, likely_scores, other, scores[other])
                scores[other] = 0
            for other in likely:
                if other >= 0:
                    value = similarity_to(line, dense[row], other, indptr, indices, data, dense, share)
                    insert(rows[row], similarity[row], other, value)
            for p in range(indptr[row], indptr[row + 1]):
                line[indices[p]] = 0


DEFAULT_ROUNDS = 2
MAX_ROUNDS = 8  # more than usual while too little is found
WANTED = 0.95  # of the exact neighbours
ENOUGH = 0.01  # share of new neighbours in a round that is the last
SAMPLE = 500
START_FRACTION = 0.6  # of the work, for the progress


OnProgress = Callable[[float], None] | None


@dataclass(frozen=True)
class _Start:
    """The first lists, of rows in an order that keeps neighbours together, and what was compared for them."""

    order: npt.NDArray[np.int64]
    rows: JoinedRows
    found: Neighbors
    compared: Compared


def search_some(
    rows: JoinedRows, *, k: int, rng: np.random.Generator, on_progress: OnProgress = None
) -> Neighbors:
    """Find most of the k most similar other rows of each row, and measure how many; ties as in the exact."""
    width = max(k, REACH)
    report = None if on_progress is None else (lambda done: on_progress(START_FRACTION * done))
    if rows.dense.shape[1]:
        start = _start_from_cells(rows, k=width, rng=rng, on_progress=report)
    else:
        start = _start_from_postings(rows, k=width, on_progress=report)
    lists = Lists(start.found.rows, start.found.similarity, start.found.rows >= 0)
    sample = Sample(rows, k=k, rng=rng)
    found = None
    for done in range(1, MAX_ROUNDS + 1):
        lists = refine(start.rows, lists, start.compared)
        found = None
        if on_progress is not None:
            on_progress(START_FRACTION + (1 - START_FRACTION) * min(1.0, done / DEFAULT_ROUNDS))
        if lists.is_new[:, :k].mean() < ENOUGH:
            break
        if done >= DEFAULT_ROUNDS:
            found = _in_rows(lists, start.order, k=k)
            if sample.recall(found) >= WANTED:
                break
    if found is None:
        found = _in_rows(lists, start.order, k=k)
    if on_progress is not None:
        on_progress(1.0)
    return Neighbors(found.rows, found.similarity, sample.recall(found))


def _start_from_cells(
    rows: JoinedRows, *, k: int, rng: np.random.Generator, on_progress: OnProgress
) -> _Start:
    cells = make_cells(rows.dense, rng=rng)
    starts = np.append(0, np.cumsum([len(near) for near in cells.near]))
    compared = Compared(cells.of_places, starts, np.concatenate(cells.near))
    ordered = rows.take(cells.order)
    return _Start(cells.order, ordered, compare_cells(ordered, cells, k=k, on_progress=on_progress), compared)


def _start_from_postings(rows: JoinedRows, *, k: int, on_progress: OnProgress) -> _Start:
    one_group = np.zeros(len(rows), dtype=np.int32)
    nothing = Compared(one_group, np.zeros(2, dtype=np.int64), np.zeros(0, dtype=np.int64))
    found = compare_postings(rows, k=k, on_progress=on_progress)
    return _Start(np.arange(len(rows)), rows, found, nothing)


class Sample:
    """Some of the rows with the similarity of their exact k-th neighbour, to measure what was found."""

    def __init__(self, rows: JoinedRows, *, k: int, rng: np.random.Generator) -> None:
        self._places = np.sort(rng.choice(len(rows), size=min(SAMPLE, len(rows)), replace=False))
        exact = search_all(rows, k=k, places=self._places)
        is_there = exact.rows >= 0
        self._wanted = int(is_there.sum())
        self._lowest = np.where(is_there, exact.similarity, np.inf).min(axis=1, keepdims=True)

    def recall(self, found: Neighbors) -> float:
        """Return the share of the exact neighbours that were found.

        What is as similar as the exact k-th counts: which of several equals was found is of no interest.
        """
        rows, similarity = found.rows[self._places], found.similarity[self._places]
        is_right = (rows >= 0) & (similarity >= self._lowest - 1e-6)
        return float(is_right.sum() / self._wanted) if self._wanted else 1.0


def _in_rows(lists: Lists, order: npt.NDArray[np.int64], *, k: int) -> Neighbors:
    """Bring lists of places in an order back to rows, ties to the lower row."""
    rows, similarity = np.empty_like(lists.rows), np.empty_like(lists.similarity)
    rows[order] = np.where(lists.rows >= 0, order[lists.rows], -1)
    similarity[order] = lists.similarity
    best = np.lexsort((rows, -similarity), axis=-1)[:, :k]
    return Neighbors(np.take_along_axis(rows, best, axis=1), np.take_along_axis(similarity, best, axis=1))
