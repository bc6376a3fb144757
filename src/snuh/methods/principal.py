"""Principal directions of sparse rows, without ever centring the rows themselves.

PCA wants centred rows, and centred rows are dense. So the leading singular directions are found first (LSA;
one more than asked for, as the first is close to the mean), and PCA is done among them, where it is small.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from snuh.methods.lsa import fit_lsa

Reals = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Principal:
    """Directions (terms, dims) by falling variance, and the projection of the mean row (dims,)."""

    directions: Reals
    centre: Reals

    def values(self, X: sparse.csr_matrix) -> Reals:
        """Project rows, so that the training rows have mean 0."""
        values: Reals = X @ self.directions - self.centre
        return values


def fit_principal(X: sparse.csr_matrix, *, dims: int, seed: int) -> Principal:
    """Find the leading `dims` principal directions, fewer where the matrix has fewer."""
    singular = fit_lsa(X, dims=dims + 1, seed=seed).directions.astype(np.float64)
    projected = X @ singular
    covariance = np.cov(projected, rowvar=False).reshape(singular.shape[1], -1)  # one column: not a number
    _, axes = np.linalg.eigh(covariance)  # by rising variance
    directions = singular @ axes[:, ::-1][:, :dims]
    return Principal(directions, (X @ directions).mean(axis=0))
