"""Signs: short lists of marks such that two documents that can be duplicates have one in common.

There are two exact ways to make them, and which one is cheaper depends on the documents:

- Words. Order the words of every document alike, the rarest first. All words that two rows have in common lie
  from the first common one on, so their cosine is at most the product of the two lengths from there. Each of
  the lengths must then reach the threshold: the words from which on a row is too short are no signs.
- Parts of the code. Split it into radius + 1 parts: two codes that differ in at most `radius` bits differ in
  at most `radius` parts, so one part is equal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from snuh.codes import unpack
from snuh.compiling import compiled

SLACK = 1e-6  # rows of unit length have it to seven digits: better one comparison too many than one too few


@dataclass(frozen=True)
class Signs:
    """The marks of every document, as in a CSR matrix, each in 0 .. kinds - 1."""

    indptr: NDArray[np.int64]  # (docs + 1,)
    marks: NDArray[np.int64]
    reach: NDArray[np.float32]  # the length of the row from the mark's word on; 1 where that is not known
    kinds: int

    @property
    def work(self) -> int:
        """How many pairs of documents share a mark, counted once for each mark they share."""
        holders = np.bincount(self.marks, minlength=self.kinds)
        return int((holders * (holders - 1) // 2).sum())

    def within(self, groups: NDArray[np.int64]) -> Signs:
        """Return signs that documents of different groups never share."""
        owner = np.repeat(groups, np.diff(self.indptr))
        pairs = owner * self.kinds + self.marks
        found, marks = np.unique(pairs, return_inverse=True)
        return Signs(self.indptr, marks, self.reach, len(found))


def rarest_first(rows: sparse.csr_matrix) -> sparse.csr_matrix:
    """Renumber the columns by how many rows have them, so that every row lists its rarest words first."""
    holders = np.bincount(rows.indices, minlength=rows.shape[1])
    number = np.empty(rows.shape[1], dtype=np.int32)
    number[np.argsort(holders, kind="stable")] = np.arange(rows.shape[1], dtype=np.int32)
    ordered = sparse.csr_matrix((rows.data, number[rows.indices], rows.indptr), shape=rows.shape, copy=True)
    ordered.sort_indices()
    return ordered


def row_reach(rows: sparse.csr_matrix) -> NDArray[np.float32]:
    """Return for every stored value the length of its row from there on."""
    reach = np.empty(rows.nnz, dtype=np.float32)
    _measure_reach(rows.indptr, rows.data, reach)
    return reach


def word_signs(rows: sparse.csr_matrix, reach: NDArray[np.float32], *, cosine: float) -> Signs:
    """Return the first words of rows ordered by `rarest_first`: two rows of at least `cosine` share one."""
    is_sign = reach >= cosine - SLACK
    before = np.concatenate([[0], np.cumsum(is_sign)])
    marks = rows.indices[is_sign].astype(np.int64)
    return Signs(before[rows.indptr], marks, reach[is_sign], rows.shape[1])


def part_signs(codes: NDArray[np.uint8], *, radius: int) -> Signs:
    """Return for every code its radius + 1 parts; the radius must be below the number of bits."""
    bits = unpack(codes)
    parts = radius + 1
    edges = np.linspace(0, bits.shape[1], parts + 1).astype(int)
    marks = np.empty((len(codes), parts), dtype=np.int64)
    kinds = 0
    for part in range(parts):
        packed = np.packbits(bits[:, edges[part] : edges[part + 1]], axis=1)
        found, values = np.unique(_as_keys(packed), return_inverse=True)
        marks[:, part] = values + kinds
        kinds += len(found)
    indptr = np.arange(len(codes) + 1, dtype=np.int64) * parts
    return Signs(indptr, marks.ravel(), np.ones(marks.size, dtype=np.float32), kinds)


def _as_keys(packed: NDArray[np.uint8]) -> NDArray[np.generic]:
    """View each row of bytes as one thing that can be sorted."""
    width = packed.shape[1]
    if width > 8:
        return np.ascontiguousarray(packed).view(np.dtype((np.void, width))).ravel()
    wide = np.zeros((len(packed), 8), dtype=np.uint8)
    wide[:, :width] = packed
    return wide.view(np.uint64).ravel()


@compiled()
def _measure_reach(indptr, data, reach):  # type: ignore[no-untyped-def]
    for row in range(indptr.shape[0] - 1):
        squares = 0.0
        for p in range(indptr[row + 1] - 1, indptr[row] - 1, -1):
            squares += np.float64(data[p]) ** 2
            reach[p] = np.sqrt(squares)
