"""Principal directions of sparse rows, without ever centring the rows, and how to turn them close to bits.

PCA wants centred rows, and centred rows are dense. So the leading singular directions are found first (LSA;
one more than asked for, as the first is close to the mean), and PCA is done among them, where it is small.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg import orthogonal_procrustes

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


def rotate_to_bits(
    principal: Principal, X: sparse.csr_matrix, *, bits: int, iterations: int, rng: np.random.Generator
) -> Principal:
    """Return as many directions as bits, turned so that rounding the rows' values to signs loses little.

    Where there are fewer directions, columns of zeros stand for the others: they have no share in the values,
    but the rotation spreads the values over all bits.
    """
    values = principal.values(X)
    dims = values.shape[1]
    values = np.pad(values, ((0, 0), (0, bits - dims)))
    rotation = quantising_rotation(values, iterations=iterations, rng=rng)[:dims]
    return Principal(principal.directions @ rotation, principal.centre @ rotation)


def quantising_rotation(values: Reals, *, iterations: int, rng: np.random.Generator) -> Reals:
    """Return a rotation (bits, bits) that brings values (docs, bits) close to signs, from a random start."""
    rotation: Reals = np.linalg.qr(rng.standard_normal((values.shape[1], values.shape[1])))[0]
    for _ in range(iterations):
        codes = np.where(values @ rotation > 0, 1.0, -1.0)
        rotation, _ = orthogonal_procrustes(values, codes)
    return rotation
