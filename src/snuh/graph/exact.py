"""The exact search: every document is compared with every other, a block of rows at a time.

One block of rows needs `block_rows * n` floats; no n x n array is ever made, and no dense n x terms array of
sparse rows (rows that are mostly filled are multiplied as what they are).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from numba import prange

from snuh.compiling import compiled
from snuh.graph.joined import JoinedRows
from snuh.graph.neighbors import Floats, Neighbors

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


@compiled(parallel=True)
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


@compiled(parallel=True)
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
