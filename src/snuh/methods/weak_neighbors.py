"""Weak supervision for RBSH and PairRec: the documents with the nearest spectral bits (`spectral`)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from snuh.codes import pack
from snuh.index import nearest
from snuh.methods.gradient import Start
from snuh.methods.limits import check_neighbors
from snuh.methods.spectral import spectral_bits
from snuh.progress import stage_callback

MAX_SPECTRAL_BITS = 64
DOCS_PER_BIT = 10  # a small corpus has few informative eigenvectors
GRAPH_NEIGHBORS = 25  # per document


def weak_neighbors(start: Start, *, k: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the k nearest other documents of each document, (docs, k), and their Hamming distances."""
    X = start.data.X
    check_neighbors(k, X.shape[0])  # some documents are held out
    bits = spectral_bits(
        X,
        bits=8 * max(1, min(MAX_SPECTRAL_BITS, X.shape[0] // DOCS_PER_BIT) // 8),
        neighbors=min(GRAPH_NEIGHBORS, X.shape[0] - 1),
        rng=start.rng,
        on_progress=stage_callback(start.on_progress, "graph"),
    )
    codes = pack(bits)
    hits = nearest(codes, codes, k=k + 1)
    # A document with many equal codes before it may not be among its own hits: then the last hit is dropped.
    is_own = hits.rows == np.arange(len(codes))[:, None]
    is_own[~is_own.any(axis=1), -1] = True
    shape = (len(codes), k)
    return hits.rows[~is_own].reshape(shape), hits.distances[~is_own].reshape(shape).astype(np.int64)
