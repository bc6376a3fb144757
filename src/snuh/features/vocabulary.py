"""Word counts of a corpus, and the choice of a vocabulary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from snuh.errors import InputError
from snuh.features.analyzer import Analyzer, is_ideograph

AUTO = "auto"
MAX_SINGLE_LETTERS = 1_000  # of alphabets; far fewer occur in one corpus

Frequency = int | float  # an int is a number of documents, a float a fraction of them


class WordCounts:
    """Term and document frequencies of the terms of a corpus."""

    def __init__(self) -> None:
        self.documents = 0
        self.totals: Counter[str] = Counter()
        self.in_documents: Counter[str] = Counter()
        self.words: dict[str, str] = {}
        """The most frequent word of each term, where it is another one."""

    def add(self, terms: list[str]) -> None:
        """Add the terms of a document."""
        self.documents += 1
        self.totals.update(terms)
        self.in_documents.update(set(terms))


class Vocabulary(NamedTuple):
    """Terms in ascending order, a word for each, and their smooth inverse document frequencies."""

    terms: list[str]
    words: list[str]
    idf: NDArray[np.float64]


def choose_terms(
    counts: WordCounts,
    *,
    min_df: Frequency,
    max_df: Frequency,
    max_terms: int,
) -> Vocabulary:
    """Return the terms within the limits; of too many, the most frequent, ties in alphabetical order.

    Single letters and digits are left out: they tell topics apart only where they are words of their own, as
    Chinese characters are.
    """
    if counts.documents == 0:
        raise InputError("expected at least 1 document to learn a vocabulary from, got 0")
    min_docs, max_docs = _documents(min_df, counts.documents), _documents(max_df, counts.documents)
    if counts.documents == 1 and not min_docs <= 1 <= max_docs:
        raise InputError(
            "there is only 1 document to learn a vocabulary from, too few for "
            f"min_df={min_df} and max_df={max_df}: give more documents"
        )
    if min_docs > max_docs:
        too_few = isinstance(min_df, int)  # and max_df is a fraction
        raise InputError(
            f"no word can be in at least {min_docs:g} (min_df={min_df}) and at most {max_docs:g} "
            f"(max_df={max_df}) of {counts.documents} documents: "
            + ("give more documents, or raise max_df" if too_few else "lower min_df or raise max_df")
        )
    words = [term for term in counts.totals if len(term) > 1 or is_ideograph(term)]
    terms = [word for word in words if min_docs <= counts.in_documents[word] <= max_docs]
    if not terms:
        raise InputError(_explain_empty(counts, words, min_docs, min_df=min_df, max_df=max_df))
    if len(terms) > max_terms:
        terms = sorted(terms, key=lambda term: (-counts.totals[term], term))[:max_terms]
    terms.sort()
    in_documents = np.array([counts.in_documents[term] for term in terms], dtype=np.float64)
    words = [counts.words.get(term, term) for term in terms]
    return Vocabulary(terms, words, np.log((1.0 + counts.documents) / (1.0 + in_documents)) + 1.0)


def frequent_words(counts: Mapping[str, int], analyzer: Analyzer) -> dict[str, str]:
    """Return the most frequent of the words that an analyzer turns into each term, for people to read."""
    words: dict[str, str] = {}
    for word in sorted(counts, key=lambda word: (-counts[word], word)):
        terms = analyzer.expand(word)
        if len(terms) == 1:
            words.setdefault(terms[0], word)
    return words


def _documents(frequency: Frequency, documents: int) -> float:
    return frequency * documents if isinstance(frequency, float) else frequency


def _explain_empty(
    counts: WordCounts, words: list[str], min_docs: float, *, min_df: Frequency, max_df: Frequency
) -> str:
    documents = "1 document" if counts.documents == 1 else f"{counts.documents} documents"
    summary = f"no term is left: {documents} held {len(counts.totals)} distinct words"
    if not counts.totals:
        return f"{summary} that are not stop words: check the texts, language and stop_words"
    too_rare = sum(counts.in_documents[word] < min_docs for word in words)
    removed = {
        "being a single letter": len(counts.totals) - len(words),
        f"min_df={min_df}": too_rare,
        f"max_df={max_df}": len(words) - too_rare,
    }
    parts = ", ".join(f"{setting} removed {number}" for setting, number in removed.items() if number)
    if words and not too_rare and all(counts.in_documents[word] == counts.documents for word in words):
        parts += ": every document has the same words, give documents that differ"
    return f"{summary}; {parts}"
