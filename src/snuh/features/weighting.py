"""From words to feature rows: counts of terms, TF-IDF weights, and checks and scaling of matrices.

Words are numbered first, and the analyzer expands each distinct word once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from snuh._numba import Kernels
from snuh.errors import InputError
from snuh.features.analyzer import Analyzer

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

TOKENIZER = Kernels(compiled="snuh.features.tokenizer_numba", plain="snuh.features.tokenizer_python")
PLAIN_SECONDS = 2e-7  # that Python takes for each character
MAX_WORDS = 2_000_000  # distinct words that a counter remembers before it starts again
FEW_ROWS = 16  # are multiplied by NumPy


class WordNumbers(NamedTuple):
    """The numbers of the words of texts, text by text."""

    indptr: NDArray[np.int64]
    words: NDArray[np.int32]


class TermCounts(NamedTuple):
    """A sparse matrix of counts in CSR layout, the terms of each text in ascending order."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    counts: NDArray[np.int32]


class TermCounter:
    """Counts known terms in texts; safe to use from several threads."""

    def __init__(self, terms: Sequence[str], analyzer: Analyzer) -> None:
        self._numbers = {term: number for number, term in enumerate(terms)}
        self._analyzer = analyzer
        self._free: list[TermColumns] = []  # a table is used by one thread at a time

    def count(self, texts: Sequence[str]) -> TermCounts:
        """Count the terms of each text."""
        try:
            columns = self._free.pop()
        except IndexError:
            columns = TermColumns(self._analyzer, self._numbers.get)
        counts = columns.count(texts)
        if len(columns.table) <= MAX_WORDS:
            self._free.append(columns)
        return counts


class Expander(Protocol):
    """What an `Analyzer` does for many words."""

    def expand_all(self, words: Sequence[str]) -> list[tuple[str, ...]]:
        """Return the terms of distinct words."""


class TermColumns:
    """A table of words with the columns of each word's terms.

    Args:
        analyzer: turns words into terms.
        column: returns the column of a term, None if it has none.
    """

    def __init__(self, analyzer: Expander, column: Callable[[str], int | None]) -> None:
        self._analyzer = analyzer
        self._column = column
        self.table: Any = None  # a `WordInterner` of one of the tokenizers

    def count(self, texts: Sequence[str]) -> TermCounts:
        """Count the terms of each text."""
        tokenizer = TOKENIZER(PLAIN_SECONDS * sum(map(len, texts)))
        if type(self.table) is not tokenizer.WordInterner:  # none yet, or from now on the other one
            self.table = tokenizer.WordInterner()
            self._indptr = np.zeros(1, dtype=np.int64)
            self._columns = np.zeros(0, dtype=np.int32)
        numbers = self.table.number(texts)
        self._update()
        counts: TermCounts = tokenizer.count_columns(numbers, self._indptr, self._columns)
        return counts

    def _update(self) -> None:
        known = len(self._indptr) - 1
        if known == len(self.table):
            return
        expanded = self._analyzer.expand_all(self.table.words(known))
        indptr, columns = word_columns(expanded, self._column)
        self._indptr = np.concatenate([self._indptr, indptr[1:] + self._indptr[-1]])
        self._columns = np.concatenate([self._columns, columns])


def word_columns(
    expanded: Iterable[tuple[str, ...]], column: Callable[[str], int | None]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the columns of each word's terms, as the rows of a CSR matrix without values."""
    columns: list[int] = []
    ends = [0]
    for terms in expanded:
        for term in terms:
            number = column(term)
            if number is not None:
                columns.append(number)
        ends.append(len(columns))
    return np.array(ends, dtype=np.int64), np.array(columns, dtype=np.int32)


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
