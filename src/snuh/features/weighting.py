"""Rows of features: TF-IDF weights, and the validation and scaling of feature matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from snuh.errors import InputError
from snuh.features.counting import TermCounts

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


FEW_ROWS = 16  # are multiplied by NumPy


@dataclass(frozen=True, eq=False, slots=True)
class SparseRows:
    """A CSR matrix with what a search needs of SciPy's, which takes longer to import than the search takes.

    Products are those of SciPy: the terms of each sum are added in order.
    """

    indptr: NDArray[np.integer[Any]]  # (rows + 1,)
    indices: NDArray[np.int32]
    data: NDArray[np.float32]
    columns: int

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and columns."""
        return len(self.indptr) - 1, self.columns

    @property
    def nnz(self) -> int:
        """The number of values stored."""
        return len(self.data)

    def __getitem__(self, rows: slice | Sequence[int] | NDArray[np.integer[Any]]) -> SparseRows:
        chosen = np.arange(self.shape[0])[rows]
        spans = [slice(self.indptr[row], self.indptr[row + 1]) for row in chosen]
        indptr = np.zeros(len(chosen) + 1, dtype=self.indptr.dtype)
        np.cumsum([span.stop - span.start for span in spans], out=indptr[1:])
        indices = np.concatenate([self.indices[:0], *(self.indices[span] for span in spans)])
        data = np.concatenate([self.data[:0], *(self.data[span] for span in spans)])
        return SparseRows(indptr, indices, data, self.columns)

    def __matmul__(self, weight: NDArray[np.float32]) -> NDArray[np.float32]:
        if self.shape[0] > FEW_ROWS:
            product: NDArray[np.float32] = self.tocsr() @ weight
            return product
        product = np.zeros((self.shape[0], weight.shape[1]), dtype=np.float32)
        for row in range(self.shape[0]):
            span = slice(self.indptr[row], self.indptr[row + 1])
            np.add.reduce(self.data[span, None] * weight[self.indices[span]], axis=0, out=product[row])
        return product

    def tocsr(self) -> csr_matrix:
        """Return SciPy's matrix of the same arrays."""
        from scipy.sparse import csr_matrix

        matrix = csr_matrix((self.data, self.indices, self.indptr), shape=self.shape)
        matrix.has_canonical_format = True  # by construction; saves SciPy a check of every row
        return matrix


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
