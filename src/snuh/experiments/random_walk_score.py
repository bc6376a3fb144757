"""Comparing fits without labels: does the code of one half of a document retrieve the other half's topic?

Held-out documents are split in two, word by word, as for the score that selects the epoch in a fit
(`methods.selection`). That score asks for the 100 documents nearest to the second half, which is narrower
than a topic: it favours codes that keep more of the words than labels reward. Here, random walks of two steps
start from the documents nearest to the second half and follow the neighbour graph of the training documents.
The score is the fraction of the 100 nearest codes to the first half that are among the 300 documents where
walks end most often. The graph takes seconds, which is affordable between fits. `snuh reproduce score`
compares it with other scores.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from snuh.features import check_matrix, unit_rows
from snuh.graph import DensePart, nearest_neighbors
from snuh.training.defaults import DEFAULTS_BY_SIZE
from snuh.training.spectral import fit_lsa
from snuh.training.validation_score import (
    MAX_DATABASE,
    MAX_QUERIES,
    RetrievalScore,
    cutoff_for,
    sample_rows,
    similarity,
    split_words,
    top_k_probability,
)

LSA_DIMS = 128
STEPS = 2  # per walk
RELEVANT_PER_RETRIEVED = 3  # 300 relevant documents for the 100 retrieved ones


class RandomWalkScore(RetrievalScore):
    """Scores encoders of one corpus; scores of all methods and settings are comparable."""

    # X and X_held: anything scikit-learn takes as a matrix.
    def __init__(self, X: Any, X_held: Any, *, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        database = sample_rows(unit_rows(check_matrix(X)), MAX_DATABASE, rng)
        queries, unseen = split_words(sample_rows(unit_rows(check_matrix(X_held)), MAX_QUERIES, rng), rng)
        lsa = fit_lsa(database, dims=LSA_DIMS, seed=seed)
        docs = database.shape[0]
        k = min(docs, DEFAULTS_BY_SIZE["neighbors"].at(docs))
        beside = [DensePart(lsa.unit_values(database), 0.5)]
        graph = nearest_neighbors(database, k=k, dense_parts=beside, rng=rng).adjacency()
        start = top_k_probability(-similarity(unseen, database, lsa), k) / np.float32(k)
        top = cutoff_for(docs)
        ends = random_walk(graph, start, steps=STEPS)
        relevant = top_k_probability(-ends, min(docs, RELEVANT_PER_RETRIEVED * top))
        super().__init__(database, queries, relevant, cutoff=top)


def random_walk(
    graph: sparse.csr_matrix, start: npt.NDArray[np.float32], *, steps: int
) -> npt.NDArray[np.float32]:
    """Return the probability that a uniform random walk ends at each document (walks, documents).

    Args:
        graph: adjacency (documents, documents); edge weights are ignored.
        start: the probability of each document to be the start (walks, documents).
        steps: per walk; the probability mass at a document without edges is lost.
    """
    edges = graph.astype(bool).astype(np.float32)
    degrees = np.asarray(edges.sum(axis=1)).ravel()
    transition = sparse.diags(1 / np.maximum(degrees, 1)) @ edges
    probabilities = sparse.csr_matrix(start)
    for _ in range(steps):
        probabilities = probabilities @ transition
    ends: npt.NDArray[np.float32] = probabilities.toarray().astype(np.float32)
    return ends
