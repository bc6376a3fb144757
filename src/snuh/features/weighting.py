"""Term counts, their TF-IDF weights, and the validation and scaling of feature matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from snuh.errors import InputError
from snuh.features.analyzer import Analyzer

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


class TermCounts(NamedTuple):
    """A sparse matrix of counts in CSR layout, the terms of each text in ascending order."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    counts: NDArray[np.int32]


class PythonTermCounter:
    """Counts the known terms of texts in pure Python, without the import of numba."""

    def __init__(self, terms: Sequence[str], analyzer: Analyzer) -> None:
        self._numbers = {term: number for number, term in enumerate(terms)}
        self._terms = analyzer.terms

    def count(self, texts: Sequence[str]) -> TermCounts:
        """Count the terms of each text."""
        numbers = self._numbers
        rows = [[numbers[word] for word in self._terms(text) if word in numbers] for text in texts]
        text_numbers = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
        terms = np.fromiter((number for row in rows for number in row), np.int64, count=len(text_numbers))
        keys, counts = np.unique(text_numbers * len(numbers) + terms, return_counts=True)
        indptr = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum(np.bincount(keys // len(numbers), minlength=len(rows)), out=indptr[1:])
        return TermCounts(indptr, (keys % len(numbers)).astype(np.int32), counts.astype(np.int32))


def tfidf_weights(counts: TermCounts, idf: NDArray[np.float64], *, sublinear_tf: bool) -> NDArray[np.float32]:
    """Return tf * idf of every count, scaled to Euclidean norm 1 for each text."""
    tf = counts.counts.astype(np.float64)
    if sublinear_tf:
        tf = np.log(tf) + 1.0
    weights = tf * idf[counts.indices]
    sizes = np.diff(counts.indptr)
    nonempty = sizes > 0  # reduceat does not handle empty ranges
    if nonempty.any():
        squares = np.add.reduceat(weights * weights, counts.indptr[:-1][nonempty])
        weights /= np.repeat(np.sqrt(squares), sizes[nonempty])
    return weights.astype(np.float32)


def check_matrix(X: Any) -> csr_matrix:  # X: anything NumPy or SciPy reads as a matrix
    """Return dense or sparse rows as float32 CSR with sorted int32 indices and no stored zeros.

    The given matrix is not modified; its arrays are shared if they already have that form. Messages contain
    the phrases that scikit-learn's estimator checks look for.

    Raises:
        InputError: If there are not two dimensions, no rows or columns, or non-finite numbers.
        TypeError: If an element is not a number.
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
    with np.errstate(over="ignore"):  # values too large for float32 become inf, which is refused below
        matrix = _canonical(sparse.csr_matrix(rows, dtype=np.float32), sparse.csr_matrix)
    _check_finite(matrix)
    return matrix


def unit_rows(X: Any) -> csr_matrix:  # X: as for check_matrix
    """Return the validated rows scaled to Euclidean norm 1; rows of zeros are unchanged."""
    matrix = check_matrix(X)
    row_numbers = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    wide = matrix.data.astype(np.float64)
    norms = np.sqrt(np.bincount(row_numbers, weights=wide * wide, minlength=matrix.shape[0]))
    unit = (wide / norms[row_numbers]).astype(np.float32)
    return type(matrix)((unit, matrix.indices, matrix.indptr), shape=matrix.shape)


def _as_numbers(X: Any) -> Any:  # a NumPy array of any kind of number
    try:
        rows = np.asarray(X)
        # Objects may be numbers; if one is not, NumPy's TypeError names its type.
        return rows if rows.dtype.kind in "fiubc" else rows.astype(np.float64)
    except ValueError as error:
        raise InputError(f"expected a matrix of numbers, got {type(X).__name__}: {error}") from error


def _canonical(matrix: csr_matrix, make: Any) -> csr_matrix:  # make: SciPy's class, which has no stubs
    indices, indptr = matrix.indices, matrix.indptr
    if matrix.nnz <= np.iinfo(np.int32).max:
        indices, indptr = indices.astype(np.int32, copy=False), indptr.astype(np.int32, copy=False)
    # A new object over the same arrays: SciPy caches flags on the object, and the caller's must not change.
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
    position = int(np.argmin(finite))
    row = int(np.searchsorted(matrix.indptr, position, side="right")) - 1
    value = "NaN" if np.isnan(matrix.data[position]) else "inf (or a number too large for float32)"
    raise InputError(
        f"expected finite numbers, got {value} in row {row}, column {matrix.indices[position]} "
        "(counted from 0): replace it before fitting or encoding"
    )
