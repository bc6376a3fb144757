"""Choosing the epoch without labels: how similar are held-out documents to what their codes retrieve?

For held-out documents, the mean similarity (of TF-IDF cosine and LSA cosine) to their top 100 of the training
documents in Hamming distance, expected over random orders of ties. It needs no labels and tracks their
precision.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse

from snuh.codes import count_distances, hamming_blocks
from snuh.encoder import Encoder
from snuh.graph import group_equal_rows
from snuh.methods.lsa import LSA
from snuh.methods.result import Score
from snuh.metrics import DistanceCounts, code_health, expected_precision

QUERIES = 1_000
DATABASE = 20_000
TOP = 100


class HeldOutScore:
    """Scores encoders on a fixed sample of held-out queries against a fixed sample of training documents.

    Where the held-out rows are the training rows themselves (a small corpus), nobody finds itself.
    """

    def __init__(
        self,
        X: sparse.csr_matrix,
        X_held: sparse.csr_matrix,
        lsa: LSA,
        *,
        rng: np.random.Generator,
    ) -> None:
        self._database = _sample_rows(X, DATABASE, rng)
        self._queries = _sample_rows(X_held, QUERIES, rng)
        sparse_cosine = (self._queries @ self._database.T).toarray()
        dense_cosine = lsa.unit_values(self._queries) @ lsa.unit_values(self._database).T
        self._similarity: npt.NDArray[np.float32] = (sparse_cosine + dense_cosine) / 2
        # In a small database the top 100 would be most of it, and every encoder would score alike.
        self._top = max(1, min(TOP, self._database.shape[0] // 10))
        self._finds_itself = X_held is X
        # Copies must share a code, so life is judged by what differs.
        filled = self._database[np.diff(self._database.indptr) > 0]
        self._distinct = filled[group_equal_rows(filled).first]

    def __call__(self, encoder: Encoder) -> Score:
        """Encode the sample and return its score."""
        codes, queries = encoder.encode(self._database), encoder.encode(self._queries)
        documents = np.empty((len(queries), encoder.bits + 1), dtype=np.int64)
        similarity = np.empty((len(queries), encoder.bits + 1))
        for block, distances in hamming_blocks(queries, codes):
            documents[block] = count_distances(distances, bits=encoder.bits)
            similarity[block] = _sum_by_distance(distances, self._similarity[block], bits=encoder.bits)
        if self._finds_itself:
            documents[:, 0] -= 1
            similarity[:, 0] -= self._similarity.diagonal()
        by_query = expected_precision(DistanceCounts(documents, similarity), k=self._top)
        return Score(float(by_query.mean()), code_health(encoder.encode(self._distinct)).alive)


def _sample_rows(X: sparse.csr_matrix, most: int, rng: np.random.Generator) -> sparse.csr_matrix:
    if X.shape[0] <= most:
        return X
    return X[np.sort(rng.choice(X.shape[0], size=most, replace=False))]


def _sum_by_distance(
    distances: npt.NDArray[np.uint16], similarity: npt.NDArray[np.float32], *, bits: int
) -> npt.NDArray[np.float64]:
    width = bits + 1
    keys = distances + (np.arange(len(distances)) * width)[:, None]
    sums = np.bincount(keys.ravel(), weights=similarity.ravel(), minlength=len(distances) * width)
    return sums.reshape(-1, width).astype(np.float64, copy=False)
