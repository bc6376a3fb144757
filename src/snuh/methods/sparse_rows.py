"""Some rows of a sparse matrix, taken and turned in compiled code.

scipy does both, and looks at every array several times to be sure that it is in order; for the rows of a
batch that takes longer than the work itself, in all a twentieth of a step (python -m benchmarks.epoch).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from snuh.compiling import compiled


@dataclass(frozen=True)
class SparseRows:
    """The arrays of a CSR matrix."""

    indptr: npt.NDArray[np.integer]  # (rows + 1,)
    indices: npt.NDArray[np.integer]  # (values,)
    data: npt.NDArray[np.floating[Any]]  # (values,)
    shape: tuple[int, int]


def take_rows(X: sparse.csr_matrix | SparseRows, rows: npt.NDArray[np.integer]) -> SparseRows:
    """Return these rows, in this order."""
    first, columns, values = _take(X.indptr, X.indices, X.data, rows)
    return SparseRows(first, columns, values, (len(rows), X.shape[1]))


def transposed(X: sparse.csr_matrix | SparseRows) -> SparseRows:
    """Return columns as rows, the values of each in order."""
    first, rows, values = _transpose(X.indptr, X.indices, X.data, X.shape[1])
    return SparseRows(first, rows, values, (X.shape[1], X.shape[0]))


@compiled()
def _take(indptr, indices, data, rows):  # type: ignore[no-untyped-def]
    first = np.zeros(len(rows) + 1, dtype=indptr.dtype)
    for r in range(len(rows)):
        first[r + 1] = first[r] + indptr[rows[r] + 1] - indptr[rows[r]]
    taken, values = np.empty(first[-1], dtype=indices.dtype), np.empty(first[-1], dtype=data.dtype)
    for r in range(len(rows)):
        shift = indptr[rows[r]] - first[r]
        for p in range(first[r], first[r + 1]):
            taken[p], values[p] = indices[p + shift], data[p + shift]
    return first, taken, values


@compiled()
def _transpose(indptr, indices, data, columns):  # type: ignore[no-untyped-def]
    first = np.zeros(columns + 1, dtype=indptr.dtype)
    for p in range(indptr[-1]):
        first[indices[p] + 1] += 1
    for c in range(columns):
        first[c + 1] += first[c]
    free = first[:-1].copy()
    taken, values = np.empty(indptr[-1], dtype=indices.dtype), np.empty(indptr[-1], dtype=data.dtype)
    for r in range(len(indptr) - 1):
        for p in range(indptr[r], indptr[r + 1]):
            place = free[indices[p]]
            free[indices[p]] += 1
            taken[place], values[place] = r, data[p]
    return first, taken, values
