"""Latent semantic analysis of sparse rows, for graphs and the held-out score."""

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


# PCA of sparse rows without centring them, and the rotation of ITQ towards bits.
#
# PCA needs centred rows, which are dense. So the leading singular directions are computed first (LSA; one
# more
# than requested, as the first is close to the mean), and PCA is done within their small space.

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


# Spectral bits: signs of the smoothest eigenvectors of a graph, which neighbours tend to share.
#
#     L y = lambda D y,   L = D - W,   D = diag(W 1)
#
# W: similarity of neighbours. y: eigenvectors by increasing lambda; the first is constant and left out. The
# bit
# of a document is 1 if y is above its median.
#
# A graph of texts has small components with few links to the rest, and the first vectors only separate them.
# So
# every document is weakly linked to every other, W + (tau / n) 1 1', by products that need no n x n array.
# Shift-and-invert, the standard method for small lambda, causes fill-in on such graphs; the same vectors,
# times
# D^1/2, belong to the largest eigenvalues of D^-1/2 W D^-1/2, which the Lanczos method finds by products
# alone.


WEAK_LINK = 0.03  # tau, as a fraction of the mean degree
MIN_DOCS_PER_VECTOR = 4  # of the Lanczos method, which needs many more documents than vectors


def spectral_bits(
    X: sparse.csr_matrix,
    *,
    bits: int,
    neighbors: int,
    rng: np.random.Generator,
    on_progress: Callable[[float], None] | None = None,
) -> npt.NDArray[np.bool_]:
    """Return the spectral bits (docs, bits) of unit rows, each set for about half of the distinct documents.

    Copies count once and share their bits. If there are too few documents for enough vectors, the remaining
    bits use random linear combinations of them.
    """
    unique = find_unique_rows(X)
    graph = nearest_neighbors(X[unique.first], k=neighbors, on_progress=on_progress).adjacency()
    vectors = spectral_vectors(graph, dims=bits, rng=rng)
    mixtures = rng.standard_normal((vectors.shape[1], bits - vectors.shape[1]))
    vectors = np.hstack([vectors, vectors @ mixtures])
    distinct: npt.NDArray[np.bool_] = vectors > np.median(vectors, axis=0)
    return distinct[unique.inverse]


def spectral_vectors(adjacency: sparse.csr_matrix, *, dims: int, rng: np.random.Generator) -> Reals:
    """Return the `dims` smoothest eigenvectors (docs, dims) of a symmetric graph with weak links added.

    The constant vector is left out; a graph of n documents has at most n - 1 others.
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

    if docs < MIN_DOCS_PER_VECTOR * (dims + 1):
        eigenvalues, vectors = np.linalg.eigh(scaled.toarray() + (tau / docs) * np.outer(scale, scale))
    else:
        operator = LinearOperator((docs, docs), matvec=multiply, dtype=np.float64)
        start = rng.standard_normal(docs)
        eigenvalues, vectors = eigsh(operator, k=dims + 1, which="LA", v0=start)
    order = np.argsort(-eigenvalues)[1 : dims + 1]
    smoothest: Reals = vectors[:, order] * scale[:, None]
    return smoothest


# Thresholds that turn real values into bits: the medians of the training documents.


def distinct_rows(X: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return each distinct row once, so that many copies of a document do not shift the medians."""
    first = find_unique_rows(X).first
    return X if len(first) == X.shape[0] else X[first]


def medians(values: Floats) -> Floats:
    """Return the median of each bit of values (rows, bits), between two rows if there is more than one.

    The bit of a row exactly at the threshold would depend on rounding.
    """
    ordered = np.sort(values, axis=0)
    below = (len(ordered) - 1) // 2
    above = min(below + 1, len(ordered) - 1)
    middle: Floats = (ordered[below] + ordered[above]) / 2
    return middle
