"""Word counts of a corpus, the choice of a vocabulary, and the settings of TF-IDF features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from snuh.errors import InputError
from snuh.features.analyzer import Analyzer, fold, is_ideograph
from snuh.features.languages import check_languages, stop_words

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The parameters of `TfidfFeatures`; invalid values raise InputError."""

    max_terms: int
    min_df: Frequency
    max_df: Frequency
    sublinear_tf: bool
    language: str | tuple[str, ...] | None
    stop_words: str | tuple[str, ...] | None
    stemming: bool
    identifiers: bool
    fold_numbers: bool

    def __post_init__(self) -> None:
        if type(self.max_terms) is not int or self.max_terms < 1:
            raise InputError(f"max_terms must be an integer of at least 1, got {self.max_terms!r}")
        _check_frequency("min_df", self.min_df)
        _check_frequency("max_df", self.max_df)
        if type(self.min_df) is type(self.max_df) and self.min_df > self.max_df:
            raise InputError(f"min_df must not be above max_df, got {self.min_df} and {self.max_df}")
        if self.language not in (AUTO, None):
            check_languages((self.language,) if isinstance(self.language, str) else self.language or ())
        if self.stop_words not in (AUTO, None) and not (
            isinstance(self.stop_words, tuple) and all(isinstance(word, str) for word in self.stop_words)
        ):
            raise InputError(f'stop_words must be "auto", None or a list of words, got {self.stop_words!r}')
        for name in ("sublinear_tf", "stemming", "identifiers", "fold_numbers"):
            value = getattr(self, name)
            if not isinstance(value, bool):
                raise InputError(f"{name} must be True or False, got {value!r}")

    def analyzer(self, recognized: Sequence[str]) -> Analyzer:
        """Return the analyzer of a corpus in which some languages were recognized."""
        if self.language == AUTO:
            languages = tuple(recognized)
        else:
            languages = (self.language,) if isinstance(self.language, str) else self.language or ()
        words = stop_words(languages) if self.stop_words == AUTO else self.stop_words or ()
        return Analyzer(
            languages=languages,
            stop_words=map(fold, words),
            stemming=self.stemming,
            identifiers=self.identifiers,
            fold_numbers=self.fold_numbers,
        )


def _check_frequency(name: str, value: object) -> None:
    if type(value) is int and value >= 1:
        return
    if type(value) is float and 0.0 <= value <= 1.0:
        return
    raise InputError(
        f"{name} must be a number of documents (an integer of at least 1) or a fraction of them "
        f"(0.0 to 1.0), got {value!r}"
    )
