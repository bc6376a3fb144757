"""The approximate search: a start that compares each document with some, then rounds that ask the neighbours.

The work for one document does not grow with the documents. What was found of the exact neighbours is measured
on a sample.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from snuh.graph.cells import compare_cells, make_cells
from snuh.graph.exact import search_all
from snuh.graph.joined import JoinedRows
from snuh.graph.neighbors import Neighbors
from snuh.graph.postings import compare_postings
from snuh.graph.refining import REACH, Compared, Lists, refine

USUAL_ROUNDS = 2
MOST_ROUNDS = 8  # more than usual while too little is found
WANTED = 0.95  # of the exact neighbours
ENOUGH = 0.01  # share of new neighbours in a round that is the last
SAMPLE = 500
START_SHARE = 0.6  # of the work, for the progress


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
    report = None if on_progress is None else (lambda done: on_progress(START_SHARE * done))
    if rows.dense.shape[1]:
        start = _start_from_cells(rows, k=width, rng=rng, on_progress=report)
    else:
        start = _start_from_postings(rows, k=width, on_progress=report)
    lists = Lists(start.found.rows, start.found.similarity, start.found.rows >= 0)
    sample = Sample(rows, k=k, rng=rng)
    found = None
    for done in range(1, MOST_ROUNDS + 1):
        lists = refine(start.rows, lists, start.compared)
        found = None
        if on_progress is not None:
            on_progress(START_SHARE + (1 - START_SHARE) * min(1.0, done / USUAL_ROUNDS))
        if lists.is_new[:, :k].mean() < ENOUGH:
            break
        if done >= USUAL_ROUNDS:
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
