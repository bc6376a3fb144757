"""Choosing between fits without labels: does the code of one half of a document find the other half's topic?

Held-out documents are torn in two, word by word, as for the score that chooses the epoch in a fit
(`methods.selection`). That one asks for the 100 documents nearest to the second half, which is narrower than
a topic: it likes codes that keep more words than labels reward. Here, walks of two steps start from the
documents nearest to the second half and go along the neighbour graph of the training documents; the score
is the share of the 100 nearest by code to the first half that are among the 300 that walks reach most often.
The graph takes seconds, which pay between fits. `snuh reproduce score` compares it with others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from snuh.features import check_matrix, unit_rows
from snuh.graph import DensePart, nearest_neighbors
from snuh.training.estimator import BY_SIZE
from snuh.training.spectral import fit_lsa
from snuh.training.validation_score import (
    DATABASE,
    QUERIES,
    FoundScore,
    nearest_share,
    sample_rows,
    similarity,
    top_of,
    torn_rows,
)

LSA_DIMS = 128
STEPS = 2  # of a walk
WIDTH = 3  # times as many documents are wanted as looked at


class ReachScore(FoundScore):
    """Scores encoders of one corpus: those of all methods and settings compare."""

    # X and X_held: anything scikit-learn takes as a matrix.
    def __init__(self, X: Any, X_held: Any, *, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        database = sample_rows(unit_rows(check_matrix(X)), DATABASE, rng)
        queries, unseen = torn_rows(sample_rows(unit_rows(check_matrix(X_held)), QUERIES, rng), rng)
        lsa = fit_lsa(database, dims=LSA_DIMS, seed=seed)
        docs = database.shape[0]
        k = min(docs, BY_SIZE["neighbors"].at(docs))
        beside = [DensePart(lsa.unit_values(database), 0.5)]
        graph = nearest_neighbors(database, k=k, dense_parts=beside, rng=rng).adjacency()
        near = nearest_share(-similarity(unseen, database, lsa), k) / np.float32(k)
        top = top_of(docs)
        wanted = nearest_share(-reached(graph, near, steps=STEPS), min(docs, WIDTH * top))
        super().__init__(database, queries, wanted, top=top)


def reached(
    graph: sparse.csr_matrix, start: npt.NDArray[np.float32], *, steps: int
) -> npt.NDArray[np.float32]:
    """Return where random walks end: the chance of each document (walks, documents), any edge as likely.

    Args:
        graph: adjacency (documents, documents); what its values are does not count.
        start: the chance of each document to be where a walk starts (walks, documents).
        steps: of each walk; one that stands where no edge leads out ends nowhere.
    """
    edges = graph.astype(bool).astype(np.float32)
    degrees = np.asarray(edges.sum(axis=1)).ravel()
    step = sparse.diags(1 / np.maximum(degrees, 1)) @ edges
    chances = sparse.csr_matrix(start)
    for _ in range(steps):
        chances = chances @ step
    ends: npt.NDArray[np.float32] = chances.toarray().astype(np.float32)
    return ends
