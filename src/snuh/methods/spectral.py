"""Spectral bits: signs of the smoothest eigenvectors of a graph, which neighbours tend to share.

    L y = lambda D y,   L = D - W,   D = diag(W 1)

W: similarity of neighbours. y: eigenvectors by increasing lambda; the first is constant and left out. The bit
of a document is 1 if y is above its median.

A graph of texts has small components with few links to the rest, and the first vectors only separate them. So
every document is weakly linked to every other, W + (tau / n) 1 1', by products that need no n x n array.
Shift-and-invert, the standard method for small lambda, causes fill-in on such graphs; the same vectors, times
D^1/2, belong to the largest eigenvalues of D^-1/2 W D^-1/2, which the Lanczos method finds by products alone.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh

from snuh.graph import group_equal_rows, nearest_neighbors

Reals = npt.NDArray[np.float64]

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
    kinds = group_equal_rows(X)
    graph = nearest_neighbors(X[kinds.first], k=neighbors, on_progress=on_progress).adjacency()
    vectors = spectral_vectors(graph, dims=bits, rng=rng)
    mixtures = rng.standard_normal((vectors.shape[1], bits - vectors.shape[1]))
    vectors = np.hstack([vectors, vectors @ mixtures])
    distinct: npt.NDArray[np.bool_] = vectors > np.median(vectors, axis=0)
    return distinct[kinds.kind]


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
