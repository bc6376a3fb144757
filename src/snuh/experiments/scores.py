"""Scores of encoders: precision by validation labels, and candidates that need no labels.

`LabelScore` selects the epoch as the paper does. The candidates are what `snuh reproduce score` compares:
which of them tracks precision by labels? The first five look at the 100 nearest training documents of
held-out documents, in expectation over ties:

- `words`: their mean TF-IDF cosine to the query.
- `lsa`: their mean cosine to it in the LSA space of the training documents.
- `both`: the mean of the two.
- `overlap`: the fraction of them among the query's 100 nearest by `both`.
- `prediction`: how much better their words predict the query's words than those of the whole corpus do,
  in nats per word.

For the last three, each held-out document is split in two, word by word:

- `halves`: the fraction of first halves whose second half is within the nearest 1 % of all second halves.
- `unseen`: the overlap of the documents nearest to the first half by code with those nearest to the second
  half by words. It selects the epoch in training (`training.validation_score`).
- `reach`: the overlap of the same documents with those that short random walks on a neighbour graph reach
  from the second half. It compares settings in `snuh tune` (`RandomWalkScore`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from snuh.codes import hamming_blocks
from snuh.corpus import MatrixSplit
from snuh.encoder import Encoder
from snuh.features import check_matrix, unit_rows
from snuh.graph import DensePart, nearest_neighbors
from snuh.metrics import code_health, precision_at_k
from snuh.training import DEFAULTS_BY_SIZE
from snuh.training.spectral import fit_lsa
from snuh.training.validation_score import (
    MAX_DATABASE,
    MAX_QUERIES,
    RELEVANT_PER_RETRIEVED,
    HeldOutScore,
    RetrievalScore,
    Score,
    cutoff_for,
    sample_rows,
    similarity,
    split_words,
    top_k_probability,
)

CANDIDATES = ("words", "lsa", "both", "overlap", "prediction", "halves", "unseen", "reach")
TUNING_SCORE = "reach"  # the candidate that `snuh tune` maximizes

Floats = npt.NDArray[np.float32]


class LabelScore:
    """Scores encoders by precision@100 of validation documents that query the training documents.

    Nothing else uses labels before evaluation; this repeats the paper's protocol, and no table mixes the two.
    """

    def __init__(self, train: MatrixSplit, val: MatrixSplit) -> None:
        self._train, self._val = train, val
        # An encoder in training takes rows of unit length.
        self.database = unit_rows(check_matrix(train.X))
        self.queries = unit_rows(check_matrix(val.X))

    def __call__(self, encoder: Encoder) -> Score:
        """Encode both splits and return their precision@100."""
        codes = encoder.encode(self.database)
        queries = encoder.encode(self.queries)
        precision = precision_at_k(queries, self._val.labels, codes, self._train.labels)
        return Score(precision, code_health(codes).alive)


class CandidateScores:
    """Computes every candidate for encoders of one corpus, on the same sample of its documents."""

    def __init__(self, X: Any, X_held: Any) -> None:  # anything scikit-learn takes as a matrix
        rng = np.random.default_rng(0)
        self._database = sample_rows(unit_rows(check_matrix(X)), MAX_DATABASE, rng)
        self._queries = sample_rows(unit_rows(check_matrix(X_held)), MAX_QUERIES, rng)
        self._first, self._second = split_words(self._queries, rng)
        lsa = fit_lsa(self._database, dims=LSA_DIMS, seed=0)
        self._words: Floats = (self._queries @ self._database.T).toarray()
        self._both = similarity(self._queries, self._database, lsa)
        self._top = cutoff_for(self._database.shape[0])
        self._nearest = top_k_probability(-self._both, self._top)
        self._reach = RandomWalkScore(X, X_held)
        self._unseen = HeldOutScore(self._database, self._queries, lsa, rng=np.random.default_rng(0))

    def __call__(self, encoder: Encoder) -> dict[str, float]:
        """Return the score of each candidate."""
        weights = top_k_probability(_distances(encoder, self._queries, self._database), self._top)
        words, both = (
            float((weights * cosine).sum(1).mean() / self._top) for cosine in (self._words, self._both)
        )
        return {
            "words": words,
            "lsa": 2 * both - words,
            "both": both,
            "overlap": float((weights * self._nearest).sum(1).mean() / self._top),
            "prediction": information_gain(weights, self._database, self._queries),
            "halves": self._matching_halves(encoder),
            "unseen": self._unseen(encoder).value,
            "reach": self._reach(encoder).value,
        }

    def _matching_halves(self, encoder: Encoder) -> float:
        distances = _distances(encoder, self._first, self._second)
        weights = top_k_probability(distances, max(1, len(distances) // 100))
        return float(weights.diagonal().mean())


def information_gain(weights: Floats, database: sparse.csr_matrix, queries: sparse.csr_matrix) -> float:
    """Return how much better neighbours predict a query's words than the whole corpus does, in nats per word.

    Args:
        weights: of each document as a neighbour of each query (queries, documents).
        database: term weights of the documents (documents, terms).
        queries: term weights of the queries (queries, terms).
    """
    words = _normalize_rows(database)
    corpus = np.asarray(words.mean(axis=0)).ravel()
    neighbors = sparse.csr_matrix(weights / weights.sum(1, keepdims=True)) @ words
    targets = _normalize_rows(queries)
    targets = targets.multiply(corpus > 0).tocsr()
    targets.eliminate_zeros()
    # Smoothed with half of the corpus's distribution: a word that no neighbour has is not impossible.
    ratio = 0.5 + 0.5 * _values_at(neighbors, targets) / corpus[targets.indices]
    return float((targets.data * np.log(ratio)).sum() / queries.shape[0])


def _values_at(X: sparse.csr_matrix, pattern: sparse.csr_matrix) -> npt.NDArray[np.float64]:
    """Return the values of X at the stored entries of `pattern`, in its order."""
    X.sort_indices()
    width = np.int64(X.shape[1])
    keys, wanted = (
        np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)) * width + matrix.indices
        for matrix in (X, pattern)
    )
    index = np.minimum(np.searchsorted(keys, wanted), max(0, len(keys) - 1))
    return np.where(keys[index] == wanted, X.data[index], 0.0) if len(keys) else np.zeros(len(wanted))


def _distances(encoder: Encoder, queries: sparse.csr_matrix, database: sparse.csr_matrix) -> npt.NDArray[Any]:
    blocks = hamming_blocks(encoder.encode(queries), encoder.encode(database))
    return np.concatenate([distances.copy() for _, distances in blocks])


def _normalize_rows(X: sparse.csr_matrix) -> sparse.csr_matrix:
    sums = np.asarray(X.sum(axis=1)).ravel()
    return sparse.csr_matrix(sparse.diags(1 / np.where(sums > 0, sums, 1)) @ X)


LSA_DIMS = 128
STEPS = 2  # per walk


class RandomWalkScore(RetrievalScore):
    """Does the code of one half of a document retrieve the other half's topic? The score of `snuh tune`.

    Held-out documents are split in two, word by word, as for the score that selects the epoch in a fit. That
    score uses the 300 documents nearest to the second half, often narrower than a topic: it favours codes
    that keep more of the words than labels reward. Here, random walks of two steps start from the documents
    nearest to the second half and follow the neighbour graph of the training documents. The score is the
    fraction of the 100 nearest codes to the first half that are among the 300 documents where walks end most
    often. Scores of all methods and settings on one corpus are comparable.
    """

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
