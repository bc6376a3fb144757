"""Choosing without labels: does the code of one half of a document find what the other half is about?

Held-out documents are torn in two, word by word. The second half says, by its words (mean of TF-IDF cosine
and LSA cosine), which 100 training documents are nearest to it; the score is the share of them among the 100
nearest by Hamming distance to the code of the first half, expected over random orders of ties. It needs no
labels and tracks their precision: an encoder does well if it knows the topic, not if it copies the words it
has seen. `snuh reproduce score` compares it with others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from snuh.codes import count_distances, hamming_blocks
from snuh.encoder import Encoder
from snuh.features.weighting import unit_rows
from snuh.graph import find_unique_rows
from snuh.metrics import DistanceCounts, code_health, expected_precision
from snuh.training.result import Score
from snuh.training.spectral import LSA

QUERIES = 1_000
DATABASE = 20_000
TOP = 100


class FoundScore:
    """Scores encoders by the share of what is wanted among the nearest to each query by Hamming distance."""

    def __init__(
        self,
        database: sparse.csr_matrix,
        queries: sparse.csr_matrix,
        wanted: npt.NDArray[np.float32],  # (queries, documents): how far a document is wanted, 0 to 1
        *,
        top: int,
    ) -> None:
        self._database, self._queries, self._wanted, self._top = database, queries, wanted, top
        # Copies must share a code, so life is judged by what differs.
        filled = database[np.diff(database.indptr) > 0]
        self._distinct = filled[find_unique_rows(filled).first]

    def __call__(self, encoder: Encoder) -> Score:
        """Encode the sample and return its score."""
        codes, queries = encoder.encode(self._database), encoder.encode(self._queries)
        documents = np.empty((len(queries), encoder.bits + 1), dtype=np.int64)
        wanted = np.empty((len(queries), encoder.bits + 1))
        for block, distances in hamming_blocks(queries, codes):
            documents[block] = count_distances(distances, bits=encoder.bits)
            wanted[block] = _sum_by_distance(distances, self._wanted[block], bits=encoder.bits)
        by_query = expected_precision(DistanceCounts(documents, wanted), k=self._top)
        return Score(float(by_query.mean()), code_health(encoder.encode(self._distinct)).alive)


class HeldOutScore(FoundScore):
    """Scores encoders on a fixed sample of held-out documents, against one of training documents."""

    def __init__(
        self,
        X: sparse.csr_matrix,
        X_held: sparse.csr_matrix,
        lsa: LSA,
        *,
        rng: np.random.Generator,
    ) -> None:
        database = sample_rows(X, DATABASE, rng)
        queries, unseen = torn_rows(sample_rows(X_held, QUERIES, rng), rng)
        top = top_of(database.shape[0])
        wanted = nearest_share(-similarity(unseen, database, lsa), top)
        super().__init__(database, queries, wanted, top=top)


def top_of(documents: int) -> int:
    """Return how many of so many documents to look at: of few, 100 would be most, and all score alike."""
    return max(1, min(TOP, documents // 10))


def similarity(queries: sparse.csr_matrix, database: sparse.csr_matrix, lsa: LSA) -> npt.NDArray[np.float32]:
    """Return the mean of TF-IDF cosine and LSA cosine of unit rows (queries, database)."""
    cosines: npt.NDArray[np.float32] = (queries @ database.T).toarray()
    cosines += lsa.unit_values(queries) @ lsa.unit_values(database).T
    return cosines / np.float32(2)


def nearest_share(distances: npt.NDArray[Any], k: int) -> npt.NDArray[np.float32]:
    """Return the chance of each column to be among the row's k nearest, where ties come in random order."""
    cut = np.partition(distances, k - 1, axis=1)[:, k - 1, None]
    closer, tied = distances < cut, distances == cut
    chance = (k - closer.sum(1)) / tied.sum(1)
    share: npt.NDArray[np.float32] = closer + tied * chance[:, None].astype(np.float32)
    return share


def torn_rows(X: sparse.csr_matrix, rng: np.random.Generator) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
    """Give each word of a document to one of two halves, unit rows both; a single word goes to both."""
    sizes = np.diff(X.indptr)
    rows = np.repeat(np.arange(X.shape[0]), sizes)
    order = np.lexsort((rng.random(X.nnz), rows))  # the words of each document in random order
    place = np.empty(X.nnz, dtype=np.int64)
    place[order] = np.arange(X.nnz) - X.indptr[rows]
    halves = []
    for half in (0, 1):
        kept = X.copy()
        kept.data = np.where((place % 2 == half) | (sizes[rows] == 1), X.data, 0).astype(X.dtype)
        kept.eliminate_zeros()
        halves.append(unit_rows(kept))
    return halves[0], halves[1]


def sample_rows(X: sparse.csr_matrix, most: int, rng: np.random.Generator) -> sparse.csr_matrix:
    """Return at most so many rows, drawn at random, in their order."""
    if X.shape[0] <= most:
        return X
    return X[np.sort(rng.choice(X.shape[0], size=most, replace=False))]


def _sum_by_distance(
    distances: npt.NDArray[np.uint16], gains: npt.NDArray[np.float32], *, bits: int
) -> npt.NDArray[np.float64]:
    width = bits + 1
    keys = distances + (np.arange(len(distances)) * width)[:, None]
    sums = np.bincount(keys.ravel(), weights=gains.ravel(), minlength=len(distances) * width)
    return sums.reshape(-1, width).astype(np.float64, copy=False)
