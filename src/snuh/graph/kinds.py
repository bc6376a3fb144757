"""Documents whose rows are equal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse


@dataclass(frozen=True)
class Kinds:
    """Which rows are equal: the first row of each kind, and for every row the one before it of its kind."""

    first: npt.NDArray[np.int64]  # (kinds,) in ascending order
    previous: npt.NDArray[np.int64]  # (rows,), -1 for the first of a kind

    @property
    def kind(self) -> npt.NDArray[np.int64]:
        """The kind of every row (rows,)."""
        kind = np.empty(len(self.previous), dtype=np.int64)
        kind[self.first] = np.arange(len(self.first))
        for row in np.flatnonzero(self.previous >= 0):
            kind[row] = kind[self.previous[row]]
        return kind


def group_equal_rows(X: sparse.csr_matrix) -> Kinds:
    """Find the rows that are equal to six decimals, so that rounding does not tell copies apart."""
    rounded = np.rint(X.data * 1e6).astype(np.int32)
    last: dict[bytes, int] = {}
    previous = np.full(X.shape[0], -1, dtype=np.int64)
    for row in range(X.shape[0]):
        part = slice(X.indptr[row], X.indptr[row + 1])
        key = X.indices[part].tobytes() + rounded[part].tobytes()
        previous[row] = last.get(key, -1)
        last[key] = row
    return Kinds(np.flatnonzero(previous < 0), previous)
