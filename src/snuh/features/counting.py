"""Counts of terms: words are numbered first, and the analyzer is asked about each distinct word once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from snuh._numba import Kernels
from snuh.features.analyzer import Analyzer

TOKENIZER = Kernels(compiled="snuh.features.tokenizer_numba", plain="snuh.features.tokenizer_python")
PLAIN_SECONDS = 2e-7  # that Python takes for each character
MAX_WORDS = 2_000_000  # distinct words that a counter remembers before it starts again


class WordNumbers(NamedTuple):
    """The numbers of the words of texts, text by text."""

    indptr: NDArray[np.int64]
    words: NDArray[np.int32]


class TermCounts(NamedTuple):
    """A sparse matrix of counts in CSR layout, the terms of each text in ascending order."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    counts: NDArray[np.int32]


class TermCounter:
    """Counts known terms in texts; safe to use from several threads."""

    def __init__(self, terms: Sequence[str], analyzer: Analyzer) -> None:
        self._numbers = {term: number for number, term in enumerate(terms)}
        self._analyzer = analyzer
        self._free: list[TermColumns] = []  # a table is used by one thread at a time

    def count(self, texts: Sequence[str]) -> TermCounts:
        """Count the terms of each text."""
        try:
            columns = self._free.pop()
        except IndexError:
            columns = TermColumns(self._analyzer, self._numbers.get)
        counts = columns.count(texts)
        if len(columns.table) <= MAX_WORDS:
            self._free.append(columns)
        return counts


class Expander(Protocol):
    """What an `Analyzer` does for many words."""

    def expand_all(self, words: Sequence[str]) -> list[tuple[str, ...]]:
        """Return the terms of distinct words."""


class TermColumns:
    """A table of words with the columns of each word's terms.

    Args:
        analyzer: turns words into terms.
        column: returns the column of a term, None if it has none.
    """

    def __init__(self, analyzer: Expander, column: Callable[[str], int | None]) -> None:
        self._analyzer = analyzer
        self._column = column
        self.table: Any = None  # a `WordInterner` of one of the tokenizers

    def count(self, texts: Sequence[str]) -> TermCounts:
        """Count the terms of each text."""
        tokenizer = TOKENIZER(PLAIN_SECONDS * sum(map(len, texts)))
        if type(self.table) is not tokenizer.WordInterner:  # none yet, or from now on the other one
            self.table = tokenizer.WordInterner()
            self._indptr = np.zeros(1, dtype=np.int64)
            self._columns = np.zeros(0, dtype=np.int32)
        numbers = self.table.number(texts)
        self._update()
        counts: TermCounts = tokenizer.count_columns(numbers, self._indptr, self._columns)
        return counts

    def _update(self) -> None:
        known = len(self._indptr) - 1
        if known == len(self.table):
            return
        expanded = self._analyzer.expand_all(self.table.words(known))
        indptr, columns = word_columns(expanded, self._column)
        self._indptr = np.concatenate([self._indptr, indptr[1:] + self._indptr[-1]])
        self._columns = np.concatenate([self._columns, columns])


def word_columns(
    expanded: Iterable[tuple[str, ...]], column: Callable[[str], int | None]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the columns of each word's terms, as the rows of a CSR matrix without values."""
    columns: list[int] = []
    ends = [0]
    for terms in expanded:
        for term in terms:
            number = column(term)
            if number is not None:
                columns.append(number)
        ends.append(len(columns))
    return np.array(ends, dtype=np.int64), np.array(columns, dtype=np.int32)
