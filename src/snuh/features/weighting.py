"""How often each known term occurs in each text, and the weights made of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from snuh.errors import InputError


class TermCounts(NamedTuple):
    """A sparse matrix of counts in CSR layout, the terms of each text in ascending order."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    counts: NDArray[np.int32]


class TermReader:
    """Counts known terms in texts with Python's own tools: any token pattern, and no start-up time."""

    def __init__(self, terms: Sequence[str], *, split: Callable[[str], list[str]]) -> None:
        self._numbers = {term: number for number, term in enumerate(terms)}
        self._split = split

    def count(self, texts: Sequence[str]) -> TermCounts:
        """Count the terms of each text."""
        numbers = self._numbers
        rows = [[numbers[word] for word in self._split(text) if word in numbers] for text in texts]
        text_of = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
        found = np.fromiter((number for row in rows for number in row), np.int64, count=len(text_of))
        keys, counts = np.unique(text_of * len(numbers) + found, return_counts=True)
        indptr = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum(np.bincount(keys // len(numbers), minlength=len(rows)), out=indptr[1:])
        return TermCounts(indptr, (keys % len(numbers)).astype(np.int32), counts.astype(np.int32))


def weigh(counts: TermCounts, idf: NDArray[np.float64], *, sublinear_tf: bool) -> NDArray[np.float32]:
    """Return tf * idf of every count, each text scaled to Euclidean length 1."""
    tf = counts.counts.astype(np.float64)
    if sublinear_tf:
        tf = np.log(tf) + 1.0
    weights = tf * idf[counts.indices]
    sizes = np.diff(counts.indptr)
    filled = sizes > 0  # reduceat gives nonsense for an empty range
    if filled.any():
        squares = np.add.reduceat(weights * weights, counts.indptr[:-1][filled])
        weights /= np.repeat(np.sqrt(squares), sizes[filled])
    return weights.astype(np.float32)


# Rows of features that were made elsewhere: checked, and brought into one form.

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


def check_matrix(X: Any) -> csr_matrix:  # X: what NumPy or SciPy can read as a matrix
    """Return dense or sparse rows as float32 CSR with sorted int32 indices and no stored zeros.

    The caller's matrix is never changed, but its arrays are shared where they already have that form.
    Messages hold the phrases of scikit-learn's estimator checks, which the methods pass through here.

    Raises:
        InputError: For other than two dimensions, no row, no column, or numbers that are not finite.
        TypeError: For an element that is no number at all.
    """
    from scipy import sparse

    rows = X if sparse.issparse(X) else _as_numbers(X)
    if rows.dtype.kind == "c":
        raise InputError(f"Complex data not supported: expected real numbers, got {rows.dtype}")
    if rows.ndim != 2:
        raise InputError(
            f"expected a 2-D array (documents, columns), got {rows.ndim}-D. Reshape your data with "
            "array.reshape(1, -1) if it is one document"
        )
    if rows.shape[0] == 0:
        raise InputError(
            f"expected at least 1 document, got 0 sample(s) (shape={rows.shape}) "
            "while a minimum of 1 is required."
        )
    if rows.shape[1] == 0:
        raise InputError(f"got 0 feature(s) (shape={rows.shape}) while a minimum of 1 is required.")
    with np.errstate(over="ignore"):  # too large for float32 becomes inf, and is refused below
        matrix = _canonical(sparse.csr_matrix(rows, dtype=np.float32), sparse.csr_matrix)
    _check_finite(matrix)
    return matrix


def unit_rows(X: Any) -> csr_matrix:  # X: as for check_matrix
    """Return the checked rows scaled to Euclidean length 1; a row of zeros stays one."""
    matrix = check_matrix(X)
    row_of = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    wide = matrix.data.astype(np.float64)
    lengths = np.sqrt(np.bincount(row_of, weights=wide * wide, minlength=matrix.shape[0]))
    unit = (wide / lengths[row_of]).astype(np.float32)
    return type(matrix)((unit, matrix.indices, matrix.indptr), shape=matrix.shape)


def _as_numbers(X: Any) -> Any:  # a NumPy array of any kind of number
    try:
        rows = np.asarray(X)
        # Objects may be numbers; if one is not, NumPy's TypeError says which type it is.
        return rows if rows.dtype.kind in "fiubc" else rows.astype(np.float64)
    except ValueError as error:
        raise InputError(f"expected a matrix of numbers, got {type(X).__name__}: {error}") from error


def _canonical(matrix: csr_matrix, make: Any) -> csr_matrix:  # make: SciPy's class, which has no stubs
    indices, indptr = matrix.indices, matrix.indptr
    if matrix.nnz <= np.iinfo(np.int32).max:
        indices, indptr = indices.astype(np.int32, copy=False), indptr.astype(np.int32, copy=False)
    # A new object over the same arrays: SciPy keeps notes on the object, and the caller's stays as it was.
    matrix = make((matrix.data, indices, indptr), shape=matrix.shape)
    if not (matrix.has_canonical_format and matrix.data.all()):
        matrix = matrix.copy()
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    return matrix


def _check_finite(matrix: csr_matrix) -> None:
    finite = np.isfinite(matrix.data)
    if finite.all():
        return
    at = int(np.argmin(finite))
    row = int(np.searchsorted(matrix.indptr, at, side="right")) - 1
    what = "NaN" if np.isnan(matrix.data[at]) else "inf (or a number too large for float32)"
    raise InputError(
        f"expected finite numbers, got {what} in row {row}, column {matrix.indices[at]} (counted from 0): "
        "replace it before fitting or encoding"
    )
