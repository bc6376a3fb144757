"""Some rows of a sparse matrix, taken and turned in compiled code.

scipy does both, and looks at every array several times to be sure that it is in order; for the rows of a
batch that takes longer than the work itself, in all a twentieth of a step (python -m benchmarks.epoch).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import float32, prange
from numba.extending import overload
from scipy import sparse

from snuh._numba import njit


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


@njit()
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


@njit()
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


# The softmax over the vocabulary of a batch, in one pass over logits that are too many for the cache.
#
# For every document: add the words' bias, find the largest logit, exponentiate, sum, and take away what the
# gradient takes from the words present. Each line of logits is read once from memory. torch needs a pass for
# each of these and reads the array five times, in all a tenth of a step (python -m benchmarks.epoch).

LANES = 64
SMALLEST = np.float32(-87.0)  # what exp makes of less is no normal number
HALF, ONE, LOG2_E = np.float32(0.5), np.float32(1.0), np.float32(1.44269504)
LN2, LN2_REST = np.float32(0.693359375), np.float32(-2.12194440e-4)  # ln 2; n times the first is exact
# exp(r) = 1 + r + r^2 (C0 + C1 r + ...) for |r| <= ln(2) / 2
C0, C1, C2 = np.float32(0.5), np.float32(1.6666665459e-1), np.float32(4.1665795894e-2)
C3, C4, C5 = np.float32(8.3334519073e-3), np.float32(1.3981999507e-3), np.float32(1.9875691500e-4)


def exp(x: float) -> float:
    """Exponentiate what is at most 0; single precision in a form that becomes vector instructions."""
    return math.exp(x)


@overload(exp)
def _exp(x):  # type: ignore[no-untyped-def]
    if x != float32:
        return lambda x: math.exp(x)

    def of_single(x):  # type: ignore[no-untyped-def]
        bounded = SMALLEST if x < SMALLEST else x  # not-a-number stays what it is
        power = np.floor(bounded * LOG2_E + HALF)
        r = bounded - power * LN2 - power * LN2_REST
        inner = ((((C5 * r + C4) * r + C3) * r + C2) * r + C1) * r + C0
        exponent = np.int32((np.int32(power) + np.int32(127)) << np.int32(23))
        return (inner * r * r + r + ONE) * exponent.view(np.float32)

    return of_single


@njit(fastmath=True)
def _add(line, bias):  # type: ignore[no-untyped-def]
    """Add the bias, and return the largest; several are compared at once, and so none waits for another."""
    largest = np.full(LANES, line[0] + bias[0])
    whole = line.shape[0] - line.shape[0] % LANES
    for start in range(0, whole, LANES):
        for k in range(LANES):
            value = line[start + k] + bias[start + k]
            line[start + k] = value
            largest[k] = value if value > largest[k] else largest[k]
    for w in range(whole, line.shape[0]):
        line[w] += bias[w]
        largest[0] = max(largest[0], line[w])
    return largest.max()


@njit(fastmath=True)
def _exponentiate(line, most):  # type: ignore[no-untyped-def]
    """Put exp(l - most) in place of l, and return the sum; several sums, for precision and for speed."""
    sums = np.zeros(LANES, dtype=line.dtype)
    whole = line.shape[0] - line.shape[0] % LANES
    for start in range(0, whole, LANES):
        for k in range(LANES):
            value = exp(line[start + k] - most)
            line[start + k] = value
            sums[k] += value
    for w in range(whole, line.shape[0]):
        line[w] = exp(line[w] - most)
        sums[0] += line[w]
    return sums.sum()


@njit(parallel=True, fastmath=True)
def explain_words(logits, bias, first, words, of_present, largest, total):  # type: ignore[no-untyped-def]
    """Sum the logits of the words present, and turn the logits into their gradient, up to a factor.

    Writes, with n the number of the document's words and l its logits with the bias:

    | array | |
    |---|---|
    | of_present (documents,) | the sum of l over the words present |
    | largest (documents,) | max l |
    | total (documents,) | S, the sum of e = exp(l - max l) |
    | logits (documents, vocabulary) | e - S / n at the words present, e elsewhere |
    """
    for d in prange(logits.shape[0]):
        line = logits[d]
        most = _add(line, bias)
        present = line[0] * 0
        for p in range(first[d], first[d + 1]):
            present += line[words[p]]
        sum_ = _exponentiate(line, most)
        count = first[d + 1] - first[d]
        for p in range(first[d], first[d + 1]):
            line[words[p]] -= sum_ / count
        of_present[d], largest[d], total[d] = present, most, sum_
