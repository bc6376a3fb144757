"""How often each known term occurs in each text, and the weights made of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class TermCounts(NamedTuple):
    """A sparse matrix of counts in CSR layout, the terms of each text in ascending order."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    counts: NDArray[np.int32]


class TermReader:
    """Counts known terms in texts with Python's own tools: any token pattern, and no start-up time."""

    def __init__(self, terms: Sequence[str], *, split: Callable[[str], list[str]]) -> None:
        self._numbers = {term: number for number, term in enumerate(terms)}
        self._split = split

    def count(self, texts: Sequence[str]) -> TermCounts:
        """Count the terms of each text."""
        numbers = self._numbers
        rows = [[numbers[word] for word in self._split(text) if word in numbers] for text in texts]
        text_of = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
        found = np.fromiter((number for row in rows for number in row), np.int64, count=len(text_of))
        keys, counts = np.unique(text_of * len(numbers) + found, return_counts=True)
        indptr = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum(np.bincount(keys // len(numbers), minlength=len(rows)), out=indptr[1:])
        return TermCounts(indptr, (keys % len(numbers)).astype(np.int32), counts.astype(np.int32))


def weigh(counts: TermCounts, idf: NDArray[np.float64], *, sublinear_tf: bool) -> NDArray[np.float32]:
    """Return tf * idf of every count, each text scaled to Euclidean length 1."""
    tf = counts.counts.astype(np.float64)
    if sublinear_tf:
        tf = np.log(tf) + 1.0
    weights = tf * idf[counts.indices]
    sizes = np.diff(counts.indptr)
    filled = sizes > 0  # reduceat gives nonsense for an empty range
    if filled.any():
        squares = np.add.reduceat(weights * weights, counts.indptr[:-1][filled])
        weights /= np.repeat(np.sqrt(squares), sizes[filled])
    return weights.astype(np.float32)
