"""Spectral bits: documents that are neighbours in a graph fall on the same side of its slowest vibrations.

    L y = lambda D y,   L = D - W,   D = diag(W 1)

W: similarity of neighbours. y: eigenvectors by rising lambda; the first is constant and left out. The bit
of a document is 1 where y is above its median.

A graph of texts has small parts with few links to the rest, and the first vectors do no more than name them.
So every document is weakly linked to every other, W + (tau / n) 1 1', in products that need no n x n array.
Shift-and-invert, the usual way to small lambda, fills in on such graphs; the same vectors, times D^1/2,
belong to the largest eigenvalues of D^-1/2 W D^-1/2, which the Lanczos method finds with products alone.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh

from snuh.graph import group_equal_rows, nearest_neighbors

Reals = npt.NDArray[np.float64]

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
    kinds = group_equal_rows(X)
    graph = nearest_neighbors(X[kinds.first], k=neighbors, on_progress=on_progress).adjacency()
    vectors = spectral_vectors(graph, dims=bits, rng=rng)
    mixtures = rng.standard_normal((vectors.shape[1], bits - vectors.shape[1]))
    vectors = np.hstack([vectors, vectors @ mixtures])
    distinct: npt.NDArray[np.bool_] = vectors > np.median(vectors, axis=0)
    return distinct[kinds.kind]


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
