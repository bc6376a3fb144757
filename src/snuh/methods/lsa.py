"""Latent semantic analysis of sparse rows, for graphs and the held-out score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class LSA:
    """A linear map (terms, dims) to the leading singular directions of the training rows."""

    directions: Floats

    def unit_values(self, X: sparse.csr_matrix) -> Floats:
        """Project rows and scale them to unit length; a zero row stays zero."""
        values: Floats = np.asarray(X @ self.directions, dtype=np.float32)
        lengths: Floats = np.linalg.norm(values, axis=1, keepdims=True)
        values /= np.maximum(lengths, np.finfo(np.float32).tiny)
        return values


def fit_lsa(X: sparse.csr_matrix, *, dims: int, seed: int) -> LSA:
    """Compute the leading `dims` directions (fewer if the matrix has fewer) by randomised SVD."""
    from sklearn.utils.extmath import randomized_svd

    dims = max(1, min(dims, *X.shape))
    _, _, directions = randomized_svd(X, dims, n_iter=4, random_state=seed)
    return LSA(np.ascontiguousarray(directions.T, dtype=np.float32))
