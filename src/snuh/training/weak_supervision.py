"""Weak supervision: the documents that another, simpler code takes for neighbours.

RBSH and PairRec learn from the neighbours that self-taught hashing finds: those with the nearest spectral
bits.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from snuh.codes import pack
from snuh.index import nearest
from snuh.progress import stage_callback
from snuh.training.estimator import check_neighbors
from snuh.training.gradient import Start
from snuh.training.spectral import spectral_bits

MAX_BITS = 64  # of the simpler code
DOCS_PER_BIT = 10  # a small corpus has few vectors that say something
GRAPH_NEIGHBORS = 25  # of a document in its graph


def weak_neighbors(start: Start, *, k: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return each document's k nearest others, (docs, k), and in how many bits they differ from it."""
    X = start.data.X
    check_neighbors(k, X.shape[0])  # some documents are held out
    bits = spectral_bits(
        X,
        bits=8 * max(1, min(MAX_BITS, X.shape[0] // DOCS_PER_BIT) // 8),
        neighbors=min(GRAPH_NEIGHBORS, X.shape[0] - 1),
        rng=start.rng,
        on_progress=stage_callback(start.on_progress, "graph"),
    )
    codes = pack(bits)
    found = nearest(codes, codes, k=k + 1)
    # A document with many equal codes before it may not be among its own nearest: then the last one goes.
    is_own = found.rows == np.arange(len(codes))[:, None]
    is_own[~is_own.any(axis=1), -1] = True
    shape = (len(codes), k)
    return found.rows[~is_own].reshape(shape), found.distances[~is_own].reshape(shape).astype(np.int64)
