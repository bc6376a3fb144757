"""What `snuh.features.tokenizer_numba` does, without numba: for a few texts, or where it is not installed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from snuh.features.analyzer import segment
from snuh.features.weighting import TermCounts, WordNumbers


class WordInterner:
    """Numbers distinct words in the order in which they are first seen; not safe for several threads."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._words: list[str] = []

    def __len__(self) -> int:
        return len(self._words)

    def number(self, texts: Sequence[str]) -> WordNumbers:
        """Return the number of every word of the texts, adding words that are new."""
        rows = [[self._number(text[start:end]) for start, end in segment(text)] for text in texts]
        indptr = np.zeros(len(texts) + 1, dtype=np.int64)
        np.cumsum([len(row) for row in rows], out=indptr[1:])
        words = np.fromiter((word for row in rows for word in row), dtype=np.int32, count=indptr[-1])
        return WordNumbers(indptr, words)

    def words(self, start: int = 0) -> list[str]:
        """Return the words from a number on."""
        return self._words[start:]

    def _number(self, word: str) -> int:
        number = self._numbers.get(word)
        if number is None:
            number = self._numbers[word] = len(self._words)
            self._words.append(word)
        return number


def count_columns(numbers: WordNumbers, indptr: NDArray[np.int64], columns: NDArray[np.int32]) -> TermCounts:
    """Count the columns of the words of each text."""
    size = int(columns.max(initial=-1)) + 1
    sizes = np.diff(indptr)[numbers.words]  # of each word's columns
    starts = indptr[:-1][numbers.words] - (np.cumsum(sizes) - sizes)
    found = columns[np.repeat(starts, sizes) + np.arange(sizes.sum())]
    texts = np.repeat(np.arange(len(numbers.indptr) - 1), np.diff(numbers.indptr))
    keys, counts = np.unique(np.repeat(texts, sizes) * size + found, return_counts=True)
    result = np.zeros(len(numbers.indptr), dtype=np.int64)
    if size:
        np.cumsum(np.bincount(keys // size, minlength=len(result) - 1), out=result[1:])
        keys %= size
    return TermCounts(result, keys.astype(np.int32), counts.astype(np.int32))
