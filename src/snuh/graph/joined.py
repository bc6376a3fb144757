"""Documents by sparse rows and dense rows at once.

The similarity of two documents is the cosine of their joined features: sparse unit rows (TF-IDF), optionally
with dense unit rows beside them (LSA, learnt means), each part with a weight. It is then the weighted mean of
the parts' cosines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from snuh.graph.neighbors import DensePart, Floats

DENSE_FROM = 0.25  # share of non-zeros above which one dense product beats many sparse ones

Places = npt.NDArray[np.int64] | slice


@dataclass(frozen=True)
class JoinedRows:
    """Rows whose similarity is `share` times the product of the sparse ones plus that of the dense ones."""

    X: sparse.csr_matrix
    share: np.float32
    dense: Floats  # (docs, dims), times the roots of their weights; no columns where there are none
    filled: npt.NDArray[np.bool_]  # (docs,); the others have no neighbours

    def __len__(self) -> int:
        return len(self.filled)

    def take(self, places: Places) -> JoinedRows:
        """Return some of the rows, in the order given."""
        dense = np.ascontiguousarray(self.dense[places])
        return JoinedRows(self.X[places], self.share, dense, self.filled[places])


def join(X: sparse.csr_matrix, beside: Sequence[DensePart]) -> JoinedRows:
    """Join sparse rows with those beside them; sparse rows that are mostly filled become dense ones."""
    share = 1.0 - sum(part.weight for part in beside)
    parts = [part.rows * np.float32(np.sqrt(part.weight)) for part in beside]
    filled = np.diff(X.indptr) > 0
    if X.nnz > DENSE_FROM * X.shape[0] * X.shape[1]:
        parts.append(X.toarray() * np.float32(np.sqrt(share)))
        X = sparse.csr_matrix(X.shape, dtype=np.float32)
    dense = np.concatenate(parts, axis=1) if parts else np.zeros((X.shape[0], 0))
    return JoinedRows(X, np.float32(share), dense.astype(np.float32, copy=False), filled)
