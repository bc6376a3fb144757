"""What a search for neighbours takes and gives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Neighbors:
    """For each document its nearest others, best first; -1 fills rows that have fewer than k."""

    rows: Integers  # (docs, k)
    similarity: Floats  # (docs, k)
    recall: float | None = None  # share of the exact neighbours, measured on a sample; None: all, by design

    @property
    def facts(self) -> dict[str, object]:
        """How the neighbours were searched for, and for an approximate search its recall; ready for JSON."""
        if self.recall is None:
            return {"search": "exact"}
        return {"search": "approximate", "recall": round(self.recall, 4)}

    def adjacency(self) -> sparse.csr_matrix:
        """The symmetric graph: an edge where either document lists the other, its value their similarity."""
        docs, k = self.rows.shape
        present = self.rows.ravel() >= 0
        heads = np.repeat(np.arange(docs, dtype=np.int32), k)[present]
        tails = self.rows.ravel()[present]
        values = self.similarity.ravel()[present]
        directed = sparse.csr_matrix((values, (heads, tails)), shape=(docs, docs))
        return directed.maximum(directed.T).tocsr()


@dataclass(frozen=True)
class DensePart:
    """Dense unit rows beside the sparse ones, and what they weigh in the similarity."""

    rows: Floats  # (docs, dims)
    weight: float


def gaussian_affinity(similarity: Floats, *, sigma: float) -> Floats:
    """Eq. (5) for unit rows: exp(-|x_i - x_j|^2 / sigma), where |x_i - x_j|^2 = 2 - 2 cos."""
    squared = np.maximum(2.0 - 2.0 * similarity, 0.0)
    affinity: Floats = np.exp(-squared / sigma).astype(np.float32)
    return affinity
