"""Latent semantic analysis: a few dense dimensions of sparse rows, for graphs and the held-out score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg import orthogonal_procrustes
from scipy.sparse.linalg import LinearOperator, eigsh

from snuh.graph import find_unique_rows, nearest_neighbors

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class LSA:
    """A linear map (terms, dims) to the leading singular directions of the training rows."""

    directions: Floats

    def unit_values(self, X: sparse.csr_matrix) -> Floats:
        """Project rows and scale them to unit length; a row without known terms stays zero."""
        values: Floats = np.asarray(X @ self.directions, dtype=np.float32)
        lengths: Floats = np.linalg.norm(values, axis=1, keepdims=True)
        values /= np.maximum(lengths, np.finfo(np.float32).tiny)
        return values


def fit_lsa(X: sparse.csr_matrix, *, dims: int, seed: int) -> LSA:
    """Find the leading `dims` directions (fewer where the matrix has fewer) by randomised SVD."""
    from sklearn.utils.extmath import randomized_svd

    possible = max(1, min(dims, *X.shape))
    _, _, directions = randomized_svd(X, possible, n_iter=4, random_state=seed)
    return LSA(np.ascontiguousarray(directions.T, dtype=np.float32))


# Principal directions of sparse rows, without ever centring the rows, and how to turn them close to bits.
#
# PCA wants centred rows, and centred rows are dense. So the leading singular directions are found first (LSA;
# one more than asked for, as the first is close to the mean), and PCA is done among them, where it is small.

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


def turn_to_bits(
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


# Spectral bits: documents that are neighbours in a graph fall on the same side of its slowest vibrations.
#
#     L y = lambda D y,   L = D - W,   D = diag(W 1)
#
# W: similarity of neighbours. y: eigenvectors by rising lambda; the first is constant and left out. The bit
# of a document is 1 where y is above its median.
#
# A graph of texts has small parts with few links to the rest, and the first vectors do no more than name
# them.
# So every document is weakly linked to every other, W + (tau / n) 1 1', in products that need no n x n array.
# Shift-and-invert, the usual way to small lambda, fills in on such graphs; the same vectors, times D^1/2,
# belong to the largest eigenvalues of D^-1/2 W D^-1/2, which the Lanczos method finds with products alone.


WEAK_LINK = 0.03  # tau, as a share of the mean degree
DENSE_UP_TO = 4  # documents per vector; the Lanczos method wants many more documents than vectors


def spectral_bits(
    X: sparse.csr_matrix,
    *,
    bits: int,
    neighbors: int,
    rng: np.random.Generator,
    on_progress: Callable[[float], None] | None = None,
) -> npt.NDArray[np.bool_]:
    """Return the spectral bits (docs, bits) of unit rows, each set for about half of the distinct documents.

    Copies count once and share their bits. Where there are too few documents for so many vectors, random
    mixtures of those there are make the other bits.
    """
    unique = find_unique_rows(X)
    graph = nearest_neighbors(X[unique.first], k=neighbors, on_progress=on_progress).adjacency()
    vectors = spectral_vectors(graph, dims=bits, rng=rng)
    mixtures = rng.standard_normal((vectors.shape[1], bits - vectors.shape[1]))
    vectors = np.hstack([vectors, vectors @ mixtures])
    distinct: npt.NDArray[np.bool_] = vectors > np.median(vectors, axis=0)
    return distinct[unique.inverse]


def spectral_vectors(adjacency: sparse.csr_matrix, *, dims: int, rng: np.random.Generator) -> Reals:
    """Return the `dims` slowest vectors (docs, dims) of a symmetric graph with weak links of all to all.

    The constant vector is left out; a graph of n documents has n - 1 others at most.
    """
    docs = adjacency.shape[0]
    dims = min(dims, docs - 1)
    adjacency = adjacency.astype(np.float64)
    degree = np.asarray(adjacency.sum(axis=1)).ravel()
    tau = WEAK_LINK * (degree.mean() or 1.0)
    scale = 1.0 / np.sqrt(degree + tau)
    scaled = sparse.csr_matrix(sparse.diags(scale) @ adjacency @ sparse.diags(scale))

    def multiply(vector: Reals) -> Reals:
        flat = vector.ravel()
        product: Reals = scaled @ flat + (tau / docs) * (scale @ flat) * scale
        return product

    if docs < DENSE_UP_TO * (dims + 1):
        eigenvalues, vectors = np.linalg.eigh(scaled.toarray() + (tau / docs) * np.outer(scale, scale))
    else:
        operator = LinearOperator((docs, docs), matvec=multiply, dtype=np.float64)
        start = rng.standard_normal(docs)
        eigenvalues, vectors = eigsh(operator, k=dims + 1, which="LA", v0=start)
    order = np.argsort(-eigenvalues)[1 : dims + 1]
    slowest: Reals = vectors[:, order] * scale[:, None]
    return slowest
