"""Scores that need no labels, to be compared with each other: which of them tracks precision by labels?

The first five look at the 100 nearest training documents of held-out documents, in expectation over ties:

- `words`: their mean TF-IDF cosine to the query.
- `lsa`: their mean cosine to it in the LSA space of the training documents.
- `both`: the mean of the two.
- `overlap`: the share of them that is among the query's 100 nearest by `both`.
- `prediction`: how much better their words predict the query's words than those of the whole corpus do,
  in nats a word.

For the last three each held-out document is torn in two, word by word:

- `halves`: the share of first halves whose second half is within the nearest hundredth of all second halves.
- `unseen`: the overlap of what the first half's code finds with what is nearest to the second half, by its
  words. This is what chooses the epoch in training (`methods.selection`).
- `reach`: how much of what the first half's code finds is where short walks along a neighbour graph lead
  from there. This is what chooses settings (`reach`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from snuh.codes import hamming_blocks
from snuh.encoder import Encoder
from snuh.experiments.reach import LSA_DIMS, ReachScore
from snuh.features import check_matrix, unit_rows
from snuh.methods.lsa import fit_lsa
from snuh.methods.selection import (
    MAX_DATABASE,
    MAX_QUERIES,
    HeldOutScore,
    cutoff_for,
    sample_rows,
    similarity,
    split_words,
    top_k_probability,
)

CANDIDATES = ("words", "lsa", "both", "overlap", "prediction", "halves", "unseen", "reach")

Floats = npt.NDArray[np.float32]


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
        self._reach = ReachScore(X, X_held)
        self._unseen = HeldOutScore(self._database, self._queries, lsa, rng=np.random.default_rng(0))

    def __call__(self, encoder: Encoder) -> dict[str, float]:
        """Return the score of each candidate."""
        share = top_k_probability(_distances(encoder, self._queries, self._database), self._top)
        words, both = (
            float((share * cosine).sum(1).mean() / self._top) for cosine in (self._words, self._both)
        )
        return {
            "words": words,
            "lsa": 2 * both - words,
            "both": both,
            "overlap": float((share * self._nearest).sum(1).mean() / self._top),
            "prediction": information_gain(share, self._database, self._queries),
            "halves": self._found_halves(encoder),
            "unseen": self._unseen(encoder).value,
            "reach": self._reach(encoder).value,
        }

    def _found_halves(self, encoder: Encoder) -> float:
        distances = _distances(encoder, self._first, self._second)
        share = top_k_probability(distances, max(1, len(distances) // 100))
        return float(share.diagonal().mean())


def information_gain(share: Floats, database: sparse.csr_matrix, queries: sparse.csr_matrix) -> float:
    """Return how much better neighbours predict a document's words than the whole corpus, in nats a word."""
    words = _sum_to_one(database)
    corpus = np.asarray(words.mean(axis=0)).ravel()
    near = sparse.csr_matrix(share / share.sum(1, keepdims=True)) @ words
    asked = _sum_to_one(queries)
    asked = asked.multiply(corpus > 0).tocsr()
    asked.eliminate_zeros()
    # Half of the chance is the corpus's: a word that no neighbour has is not impossible.
    ratio = 0.5 + 0.5 * _values_at(near, asked) / corpus[asked.indices]
    return float((asked.data * np.log(ratio)).sum() / queries.shape[0])


def _values_at(X: sparse.csr_matrix, places: sparse.csr_matrix) -> npt.NDArray[np.float64]:
    """Return the values of X wherever `places` has one, in its order."""
    X.sort_indices()
    width = np.int64(X.shape[1])
    keys, wanted = (
        np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)) * width + matrix.indices
        for matrix in (X, places)
    )
    found = np.minimum(np.searchsorted(keys, wanted), max(0, len(keys) - 1))
    return np.where(keys[found] == wanted, X.data[found], 0.0) if len(keys) else np.zeros(len(wanted))


def _distances(encoder: Encoder, queries: sparse.csr_matrix, database: sparse.csr_matrix) -> npt.NDArray[Any]:
    blocks = hamming_blocks(encoder.encode(queries), encoder.encode(database))
    return np.concatenate([distances.copy() for _, distances in blocks])


def _sum_to_one(X: sparse.csr_matrix) -> sparse.csr_matrix:
    sums = np.asarray(X.sum(axis=1)).ravel()
    return sparse.csr_matrix(sparse.diags(1 / np.where(sums > 0, sums, 1)) @ X)
