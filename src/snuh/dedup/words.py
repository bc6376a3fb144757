r"""The words of texts as sparse rows, for comparing documents with each other.

The vocabulary of a model tells topics apart, not documents: it may have only one word of "Quotient in Matlab"
and of "When not to vectorize Matlab?". So every word counts here, weighted by the square root of its inverse
document frequency among the documents that are compared. The root gives less weight to a misspelt word, which
no other document has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from snuh._numba import njit
from snuh.features import TfidfFeatures
from snuh.features.tokenizer_numba import ascii_words, join_texts, scan_word, word_characters
from snuh.features.vocabulary import DEFAULT_PATTERN, word_splitter

# For each text the number of distinct words; then the key and the count of each word, keys ascending.
WordCounts: TypeAlias = tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.int32]]


class WordRows:
    r"""Collects texts batch by batch; `rows` then returns one row of unit length per text.

    Args:
        features: whose token pattern and case folding are used; with the default pattern, words of one
            character count as well.
    """

    def __init__(self, features: TfidfFeatures) -> None:
        settings = features.settings
        self._count: Callable[[Sequence[str]], WordCounts]
        if settings.token_pattern == DEFAULT_PATTERN:
            self._count = _HashedWords(lowercase=settings.lowercase)
        else:
            self._count = _NumberedWords(word_splitter(settings.token_pattern, lowercase=settings.lowercase))
        self._sizes = [np.zeros(1, dtype=np.int64)]
        self._keys = [np.zeros(0, dtype=np.uint64)]
        self._counts = [np.zeros(0, dtype=np.int32)]

    def add(self, texts: Sequence[str]) -> None:
        """Add the next texts."""
        sizes, keys, counts = self._count(texts)
        self._sizes.append(sizes)
        self._keys.append(keys)
        self._counts.append(counts)

    def rows(self) -> sparse.csr_matrix:
        """Return the rows of all texts (texts, distinct words)."""
        indptr = np.cumsum(np.concatenate(self._sizes))
        words, columns = np.unique(np.concatenate(self._keys), return_inverse=True)
        texts = len(indptr) - 1
        idf = np.log((1.0 + texts) / (1.0 + np.bincount(columns, minlength=len(words)))) + 1.0
        tf = 1.0 + np.log(np.concatenate(self._counts))
        weights = (tf * np.sqrt(idf[columns])).astype(np.float32)
        rows = np.repeat(np.arange(texts), np.diff(indptr))
        norms = np.sqrt(np.bincount(rows, weights=np.square(weights, dtype=np.float64), minlength=texts))
        weights /= norms[rows].astype(np.float32)
        return sparse.csr_matrix((weights, columns, indptr), shape=(texts, max(1, len(words))))


class _NumberedWords:
    """Counts the words of any token pattern, in Python."""

    def __init__(self, split: Callable[[str], list[str]]) -> None:
        self._split = split
        self._numbers: dict[str, int] = {}

    def __call__(self, texts: Sequence[str]) -> WordCounts:
        sizes, keys, counts = [], [], []
        for text in texts:
            numbers = [self._numbers.setdefault(word, len(self._numbers)) for word in self._split(text)]
            distinct, repeats = np.unique(np.array(numbers, dtype=np.uint64), return_counts=True)
            sizes.append(len(distinct))
            keys.append(distinct)
            counts.append(repeats.astype(np.int32))
        return (
            np.array(sizes, dtype=np.int64),
            np.concatenate([*keys, np.zeros(0, dtype=np.uint64)]),
            np.concatenate([*counts, np.zeros(0, dtype=np.int32)]),
        )


class _HashedWords:
    r"""Counts words of the pattern `\w+` by their 64-bit hashes, which take the place of numbers."""

    def __init__(self, *, lowercase: bool) -> None:
        self._lowercase = lowercase
        self._folded = ascii_words(lowercase=lowercase)

    def __call__(self, texts: Sequence[str]) -> WordCounts:
        buffer, ends = join_texts(texts, lowercase=self._lowercase)
        limit = (len(buffer) + len(texts)) // 2 + 1  # a word takes a byte, and one more before the next
        sizes = np.zeros(len(texts), dtype=np.int64)
        keys, counts = np.empty(limit, dtype=np.uint64), np.empty(limit, dtype=np.int32)
        used = _count_hashes(buffer, ends, self._folded, word_characters(), sizes, keys, counts)
        return sizes, keys[:used].copy(), counts[:used].copy()


@njit()
def _count_hashes(buffer, ends, folded, is_word, sizes, keys, counts):  # type: ignore[no-untyped-def]
    used, i = 0, 0
    for text in range(len(ends)):
        first = used
        while i < ends[text]:
            i, step, characters, value = scan_word(buffer, i, ends[text], folded, is_word)
            i += step
            if characters:
                keys[used] = value
                used += 1
        keys[first:used].sort()
        distinct = first
        for k in range(first, used):
            if k > first and keys[k] == keys[distinct - 1]:
                counts[distinct - 1] += 1
            else:
                keys[distinct] = keys[k]
                counts[distinct] = 1
                distinct += 1
        sizes[text] = distinct - first
        used = distinct
    return used
