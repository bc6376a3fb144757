"""The words of texts as sparse rows, for comparing documents with each other.

The vocabulary of a model tells topics apart, not documents: it may have only one word of "Quotient in Matlab"
and of "When not to vectorize Matlab?". So every word counts here, weighted by the square root of its inverse
document frequency among the documents that are compared. The root gives less weight to a misspelt word, which
no other document has.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from snuh.features.analyzer import Analyzer
from snuh.features.counting import TermColumns


class WordRows:
    """Collects texts batch by batch; `rows` then returns one row of unit length per text."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._columns = TermColumns(
            Analyzer(stemming=False), lambda word: self._numbers.setdefault(word, len(self._numbers))
        )
        self._sizes = [np.zeros(1, dtype=np.int64)]
        self._indices = [np.zeros(0, dtype=np.int32)]
        self._counts = [np.zeros(0, dtype=np.int32)]

    def add(self, texts: Sequence[str]) -> None:
        """Add the next texts."""
        counts = self._columns.count(texts)
        self._sizes.append(np.diff(counts.indptr))
        self._indices.append(counts.indices)
        self._counts.append(counts.counts)

    def rows(self) -> sparse.csr_matrix:
        """Return the rows of all texts (texts, distinct words)."""
        indptr = np.cumsum(np.concatenate(self._sizes))
        columns = np.concatenate(self._indices)
        texts, words = len(indptr) - 1, max(1, len(self._numbers))
        idf = np.log((1.0 + texts) / (1.0 + np.bincount(columns, minlength=words))) + 1.0
        tf = 1.0 + np.log(np.concatenate(self._counts))
        weights = (tf * np.sqrt(idf[columns])).astype(np.float32)
        rows = np.repeat(np.arange(texts), np.diff(indptr))
        norms = np.sqrt(np.bincount(rows, weights=np.square(weights, dtype=np.float64), minlength=texts))
        weights /= norms[rows].astype(np.float32)
        return sparse.csr_matrix((weights, columns, indptr), shape=(texts, words))
