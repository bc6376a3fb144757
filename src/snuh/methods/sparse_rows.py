"""Row selection and transposition of sparse matrices in compiled code.

scipy validates every array several times; for the rows of a batch that takes longer than the work itself, in
all a twentieth of a step.
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
    """Return the rows with these indices, in this order."""
    offsets, columns, values = _take(X.indptr, X.indices, X.data, rows)
    return SparseRows(offsets, columns, values, (len(rows), X.shape[1]))


def transpose(X: sparse.csr_matrix | SparseRows) -> SparseRows:
    """Return the transposed matrix."""
    offsets, rows, values = _transpose(X.indptr, X.indices, X.data, X.shape[1])
    return SparseRows(offsets, rows, values, (X.shape[1], X.shape[0]))


@compiled()
def _take(indptr, indices, data, rows):  # type: ignore[no-untyped-def]
    offsets = np.zeros(len(rows) + 1, dtype=indptr.dtype)
    for r in range(len(rows)):
        offsets[r + 1] = offsets[r] + indptr[rows[r] + 1] - indptr[rows[r]]
    columns, values = np.empty(offsets[-1], dtype=indices.dtype), np.empty(offsets[-1], dtype=data.dtype)
    for r in range(len(rows)):
        shift = indptr[rows[r]] - offsets[r]
        for p in range(offsets[r], offsets[r + 1]):
            columns[p], values[p] = indices[p + shift], data[p + shift]
    return offsets, columns, values


@compiled()
def _transpose(indptr, indices, data, columns):  # type: ignore[no-untyped-def]
    offsets = np.zeros(columns + 1, dtype=indptr.dtype)
    for p in range(indptr[-1]):
        offsets[indices[p] + 1] += 1
    for c in range(columns):
        offsets[c + 1] += offsets[c]
    next_free = offsets[:-1].copy()
    rows, values = np.empty(indptr[-1], dtype=indices.dtype), np.empty(indptr[-1], dtype=data.dtype)
    for r in range(len(indptr) - 1):
        for p in range(indptr[r], indptr[r + 1]):
            target = next_free[indices[p]]
            next_free[indices[p]] += 1
            rows[target], values[target] = r, data[p]
    return offsets, rows, values
