"""PCA of sparse rows without centring them, and the rotation of ITQ towards bits.

PCA needs centred rows, which are dense. So the leading singular directions are computed first (LSA; one more
than requested, as the first is close to the mean), and PCA is done within their small space.
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
    """Directions (terms, dims) by decreasing variance, and the projection of the mean row (dims,)."""

    directions: Reals
    mean: Reals

    def values(self, X: sparse.csr_matrix) -> Reals:
        """Project rows; the training rows have mean 0."""
        values: Reals = X @ self.directions - self.mean
        return values


def fit_principal(X: sparse.csr_matrix, *, dims: int, seed: int) -> Principal:
    """Compute the leading `dims` principal directions, or fewer if the matrix has fewer."""
    singular = fit_lsa(X, dims=dims + 1, seed=seed).directions.astype(np.float64)
    projected = X @ singular
    covariance = np.cov(projected, rowvar=False).reshape(
        singular.shape[1], -1
    )  # of one column, cov is a scalar
    _, axes = np.linalg.eigh(covariance)  # by increasing variance
    directions = singular @ axes[:, ::-1][:, :dims]
    return Principal(directions, (X @ directions).mean(axis=0))


def rotate_to_bits(
    principal: Principal, X: sparse.csr_matrix, *, bits: int, iterations: int, rng: np.random.Generator
) -> Principal:
    """Return as many directions as bits, rotated so that rounding values to signs loses little.

    If there are fewer directions than bits, columns of zeros are added, and the rotation spreads the values
    over all bits.
    """
    values = principal.values(X)
    dims = values.shape[1]
    values = np.pad(values, ((0, 0), (0, bits - dims)))
    rotation = itq_rotation(values, iterations=iterations, rng=rng)[:dims]
    return Principal(principal.directions @ rotation, principal.mean @ rotation)


def itq_rotation(values: Reals, *, iterations: int, rng: np.random.Generator) -> Reals:
    """Return a rotation (bits, bits) that moves values (docs, bits) close to signs, from a random one."""
    rotation: Reals = np.linalg.qr(rng.standard_normal((values.shape[1], values.shape[1])))[0]
    for _ in range(iterations):
        codes = np.where(values @ rotation > 0, 1.0, -1.0)
        rotation, _ = orthogonal_procrustes(values, codes)
    return rotation
