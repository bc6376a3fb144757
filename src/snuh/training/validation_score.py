"""The held-out score, which needs no labels: the code of half a document retrieves the other half's topic.

The words of each held-out document are split at random into two halves. The 300 training documents nearest
to the second half (by the mean of TF-IDF cosine and LSA cosine) are the relevant ones; 100 would be narrower
than most topics. The score is the precision of the 100 documents whose codes are nearest to that of the first
half by Hamming distance, in expectation over random orders of ties. It tracks precision by labels: an encoder
scores well if it captures the topic, not if it memorises words. With vectors, the first half is encoded
without one, and the cosine of vectors is half of the similarity to the second. `snuh reproduce score`
compares it with other scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from snuh.codes import count_distances, hamming_blocks
from snuh.encoder import Encoder
from snuh.features.vectors import append_columns, split_rows
from snuh.features.weighting import unit_rows
from snuh.graph import find_unique_rows
from snuh.metrics import DistanceCounts, code_health, expected_precision
from snuh.training.spectral import LSA

MAX_QUERIES = 1_000
MAX_DATABASE = 20_000
MAX_CUTOFF = 100
RELEVANT_PER_RETRIEVED = 3  # 300 relevant documents for the 100 retrieved ones


@dataclass(frozen=True)
class Score:
    """The held-out score of an encoder, and whether its codes distinguish documents at all."""

    value: float
    alive: bool


class RetrievalScore:
    """Scores encoders by the mean precision of the nearest documents to each query by Hamming distance."""

    def __init__(
        self,
        database: sparse.csr_matrix,
        queries: sparse.csr_matrix,
        relevance: npt.NDArray[np.float32],  # (queries, documents), from 0 to 1
        *,
        cutoff: int,
    ) -> None:
        self._database, self._queries, self._relevance, self._cutoff = database, queries, relevance, cutoff
        # Copies of a document share a code, so dead codes are detected on distinct documents.
        nonempty = database[np.diff(database.indptr) > 0]
        self._distinct = nonempty[find_unique_rows(nonempty).first]

    def __call__(self, encoder: Encoder) -> Score:
        """Encode database and queries, and return the score."""
        codes, queries = encoder.encode(self._database), encoder.encode(self._queries)
        documents = np.empty((len(queries), encoder.bits + 1), dtype=np.int64)
        relevant = np.empty((len(queries), encoder.bits + 1))
        for block, distances in hamming_blocks(queries, codes):
            documents[block] = count_distances(distances, bits=encoder.bits)
            relevant[block] = _sum_by_distance(distances, self._relevance[block], bits=encoder.bits)
        by_query = expected_precision(DistanceCounts(documents, relevant), k=self._cutoff)
        return Score(float(by_query.mean()), code_health(encoder.encode(self._distinct)).alive)


class HeldOutScore(RetrievalScore):
    """Scores encoders on a fixed sample of held-out documents, against a sample of training documents."""

    def __init__(
        self,
        X: sparse.csr_matrix,
        X_val: sparse.csr_matrix,
        lsa: LSA,
        *,
        rng: np.random.Generator,
        vector_dims: int = 0,
    ) -> None:
        database, held_out = sample_rows(X, MAX_DATABASE, rng), sample_rows(X_val, MAX_QUERIES, rng)
        cutoff = cutoff_for(database.shape[0])
        relevant = min(database.shape[0], RELEVANT_PER_RETRIEVED * cutoff)
        if vector_dims:
            words, vectors = split_rows(held_out, vector_dims)
            database_words, database_vectors = split_rows(database, vector_dims)
            queries, unseen = split_words(words, rng)
            queries = append_columns(queries, vector_dims)  # the vector would give the other half away
            closeness = similarity(unseen, database_words, lsa) + vectors @ database_vectors.T
        else:
            queries, unseen = split_words(held_out, rng)
            closeness = similarity(unseen, database, lsa)
        relevance = top_k_probability(-closeness, relevant)
        super().__init__(database, queries, relevance, cutoff=cutoff)


def cutoff_for(docs: int) -> int:
    """Return the cutoff for n documents: 100, or a tenth of a small corpus, where 100 would be most of it."""
    return max(1, min(MAX_CUTOFF, docs // 10))


def similarity(queries: sparse.csr_matrix, database: sparse.csr_matrix, lsa: LSA) -> npt.NDArray[np.float32]:
    """Return the mean of TF-IDF cosine and LSA cosine of unit rows (queries, database)."""
    cosines: npt.NDArray[np.float32] = (queries @ database.T).toarray()
    cosines += lsa.unit_values(queries) @ lsa.unit_values(database).T
    return cosines / np.float32(2)


def top_k_probability(distances: npt.NDArray[Any], k: int) -> npt.NDArray[np.float32]:
    """Return the probability of each column to be among the k nearest of its row; ties in random order."""
    kth = np.partition(distances, k - 1, axis=1)[:, k - 1, None]
    closer, tied = distances < kth, distances == kth
    tied_probability = (k - closer.sum(1)) / tied.sum(1)
    probability: npt.NDArray[np.float32] = closer + tied * tied_probability[:, None].astype(np.float32)
    return probability


def split_words(
    X: sparse.csr_matrix, rng: np.random.Generator
) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
    """Split the words of each document at random into two halves of unit length; a single word is in both."""
    sizes = np.diff(X.indptr)
    rows = np.repeat(np.arange(X.shape[0]), sizes)
    order = np.lexsort((rng.random(X.nnz), rows))  # the words of each document in random order
    rank = np.empty(X.nnz, dtype=np.int64)  # of each word within its document
    rank[order] = np.arange(X.nnz) - X.indptr[rows]
    halves = []
    for parity in (0, 1):
        half = X.copy()
        half.data = np.where((rank % 2 == parity) | (sizes[rows] == 1), X.data, 0).astype(X.dtype)
        half.eliminate_zeros()
        halves.append(unit_rows(half))
    return halves[0], halves[1]


def sample_rows(X: sparse.csr_matrix, limit: int, rng: np.random.Generator) -> sparse.csr_matrix:
    """Return at most `limit` rows, sampled at random, in their original order."""
    if X.shape[0] <= limit:
        return X
    return X[np.sort(rng.choice(X.shape[0], size=limit, replace=False))]


def _sum_by_distance(
    distances: npt.NDArray[np.uint16], gains: npt.NDArray[np.float32], *, bits: int
) -> npt.NDArray[np.float64]:
    width = bits + 1
    keys = distances + (np.arange(len(distances)) * width)[:, None]
    sums = np.bincount(keys.ravel(), weights=gains.ravel(), minlength=len(distances) * width)
    return sums.reshape(-1, width).astype(np.float64, copy=False)
