"""Splitting texts into words, and counting the words of a whole corpus in one pass."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

DEFAULT_PATTERN = r"(?u)\b\w\w+\b"

# Beyond this many distinct words the rarest are forgotten: about 1 GB of counters.
MOST_DISTINCT_WORDS = 5_000_000


def word_splitter(pattern: str, *, lowercase: bool) -> Callable[[str], list[str]]:
    """Return a function from a text to its words, in order: `findall` of the pattern."""
    find = re.compile(pattern).findall

    def by_pattern(text: str) -> list[str]:
        return find(text.lower() if lowercase else text)

    if pattern != DEFAULT_PATTERN:
        return by_pattern

    # ASCII under the default pattern: blanking what is no word character is twice as fast as the pattern.
    characters = map(chr, range(128))
    table = "".join(c if c.isalnum() or c == "_" else " " for c in characters)
    table = table.lower() if lowercase else table

    def by_table(text: str) -> list[str]:
        if not text.isascii():
            return by_pattern(text)
        return [word for word in text.translate(table).split() if len(word) > 1]

    return by_table


class WordCounts:
    """How often, and in how many documents, each word of a corpus occurs.

    When there are more than `most` distinct words, those seen once are forgotten (then, if too few were,
    those seen twice, and so on), so memory stays bounded. A forgotten word that comes back starts at zero:
    its count is then too low by what was forgotten, which is far below what enters a vocabulary.
    """

    def __init__(self, *, most: int = MOST_DISTINCT_WORDS) -> None:
        self.documents = 0
        self.totals: Counter[str] = Counter()
        self.in_documents: Counter[str] = Counter()
        self._most = most

    def add(self, words: list[str]) -> None:
        """Count the words of one more document."""
        self.documents += 1
        self.totals.update(words)
        self.in_documents.update(set(words))
        if len(self.totals) > self._most:
            self._forget_rarest()

    def _forget_rarest(self) -> None:
        rarest = 0
        while len(self.totals) > self._most // 2:
            rarest = min(count for count in self.totals.values() if count > rarest)
            for word in [word for word, count in self.totals.items() if count <= rarest]:
                del self.totals[word], self.in_documents[word]
