"""Word counts of a corpus, the choice of a vocabulary, and the settings of TF-IDF features."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from re import _parser as regex_parser
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from snuh.errors import InputError, MissingExtraError

Frequency = int | float  # an int is a number of documents, a float a fraction of them

DEFAULT_PATTERN = r"(?u)\b\w\w+\b"

MAX_DISTINCT_WORDS = 5_000_000  # about 1 GB of counters


def word_splitter(pattern: str, *, lowercase: bool) -> Callable[[str], list[str]]:
    """Return a function that splits a text into words, as `findall` of the pattern does."""
    find = re.compile(pattern).findall

    def by_pattern(text: str) -> list[str]:
        return find(text.lower() if lowercase else text)

    if pattern != DEFAULT_PATTERN:
        return by_pattern

    # ASCII with the default pattern: translating other characters to spaces is twice as fast.
    characters = map(chr, range(128))
    table = "".join(c if c.isalnum() or c == "_" else " " for c in characters)
    table = table.lower() if lowercase else table

    def by_table(text: str) -> list[str]:
        if not text.isascii():
            return by_pattern(text)
        return [word for word in text.translate(table).split() if len(word) > 1]

    return by_table


class WordCounts:
    """Term and document frequencies of the words of a corpus.

    When there are more than `limit` distinct words, those that occurred once are dropped (then those that
    occurred twice, and so on, until half are left), so memory stays bounded. A dropped word that occurs again
    starts at zero; its count is too low by the dropped part, which is far below the counts in a vocabulary.
    """

    def __init__(self, *, limit: int = MAX_DISTINCT_WORDS) -> None:
        self.documents = 0
        self.totals: Counter[str] = Counter()
        self.in_documents: Counter[str] = Counter()
        self._limit = limit

    def add(self, words: list[str]) -> None:
        """Add the words of a document."""
        self.documents += 1
        self.totals.update(words)
        self.in_documents.update(set(words))
        if len(self.totals) > self._limit:
            self._drop_rarest()

    def _drop_rarest(self) -> None:
        rarest = 0
        while len(self.totals) > self._limit // 2:
            rarest = min(count for count in self.totals.values() if count > rarest)
            for word in [word for word, count in self.totals.items() if count <= rarest]:
                del self.totals[word], self.in_documents[word]


class Vocabulary(NamedTuple):
    """Terms in ascending order with their smooth inverse document frequencies."""

    terms: list[str]
    idf: NDArray[np.float64]


def choose_terms(
    counts: WordCounts,
    *,
    min_df: Frequency,
    max_df: Frequency,
    max_terms: int,
    stop_words: Collection[str],
) -> Vocabulary:
    """Return the words within the limits; of too many, the most frequent, ties in alphabetical order."""
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
    words = [word for word in counts.totals if word not in stop_words]
    terms = [word for word in words if min_docs <= counts.in_documents[word] <= max_docs]
    if not terms:
        raise InputError(_explain_empty(counts, words, min_docs, min_df=min_df, max_df=max_df))
    if len(terms) > max_terms:
        terms = sorted(terms, key=lambda term: (-counts.totals[term], term))[:max_terms]
    terms.sort()
    in_documents = np.array([counts.in_documents[term] for term in terms], dtype=np.float64)
    return Vocabulary(terms, np.log((1.0 + counts.documents) / (1.0 + in_documents)) + 1.0)


def _documents(frequency: Frequency, documents: int) -> float:
    return frequency * documents if isinstance(frequency, float) else frequency


def _explain_empty(
    counts: WordCounts, words: list[str], min_docs: float, *, min_df: Frequency, max_df: Frequency
) -> str:
    documents = "1 document" if counts.documents == 1 else f"{counts.documents} documents"
    summary = f"no term is left: {documents} held {len(counts.totals)} distinct words"
    if not counts.totals:
        return f"{summary}: check the texts and token_pattern"
    too_rare = sum(counts.in_documents[word] < min_docs for word in words)
    removed = {
        "stop_words": len(counts.totals) - len(words),
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
    stop_words: str | tuple[str, ...] | None
    token_pattern: str
    lowercase: bool
    sublinear_tf: bool

    def __post_init__(self) -> None:
        if type(self.max_terms) is not int or self.max_terms < 1:
            raise InputError(f"max_terms must be an integer of at least 1, got {self.max_terms!r}")
        _check_frequency("min_df", self.min_df)
        _check_frequency("max_df", self.max_df)
        if type(self.min_df) is type(self.max_df) and self.min_df > self.max_df:
            raise InputError(f"min_df must not be above max_df, got {self.min_df} and {self.max_df}")
        _check_stop_words(self.stop_words)
        _check_pattern(self.token_pattern)
        for name in ("lowercase", "sublinear_tf"):
            value = getattr(self, name)
            if not isinstance(value, bool):
                raise InputError(f"{name} must be True or False, got {value!r}")

    def stop_list(self) -> Collection[str]:
        """Return the stop words; the English ones are scikit-learn's, which is needed only for fitting."""
        if self.stop_words != "english":
            return frozenset(self.stop_words or ())
        try:
            from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
        except ImportError as error:
            raise MissingExtraError(
                'the English stop words come with scikit-learn: pip install "snuh[train]"'
            ) from error
        words: frozenset[str] = ENGLISH_STOP_WORDS
        return words


def _check_frequency(name: str, value: object) -> None:
    if type(value) is int and value >= 1:
        return
    if type(value) is float and 0.0 <= value <= 1.0:
        return
    raise InputError(
        f"{name} must be a number of documents (an integer of at least 1) or a fraction of them "
        f"(0.0 to 1.0), got {value!r}"
    )


def _check_stop_words(value: object) -> None:
    if value is None or value == "english":
        return
    if not isinstance(value, tuple) or not all(isinstance(word, str) for word in value):
        raise InputError(f'stop_words must be "english", None or a list of words, got {value!r}')


def _check_pattern(value: object) -> None:
    if not isinstance(value, str):
        raise InputError(f"token_pattern must be a regular expression (str), got {value!r}")
    try:
        groups = re.compile(value).groups
    except re.error as error:
        raise InputError(f"token_pattern {value!r} is not a valid regular expression: {error}") from error
    if groups > 1:
        raise InputError(f"token_pattern may have 1 capturing group, got {groups}: use (?:...) for others")
    if _has_nested_repeat(regex_parser.parse(value)):
        raise InputError(
            f"token_pattern {value!r} repeats something that repeats or has alternatives, which can take "
            "exponential time: use character classes, such as [\\w-]+"
        )


def _has_nested_repeat(pattern: Any, *, within: bool = False) -> bool:
    """Tell whether a repeat contains another one, or alternatives. A model of others may have any pattern."""
    for operator, argument in pattern:
        name = str(operator)
        if within and name in ("BRANCH", "MAX_REPEAT", "MIN_REPEAT", "GROUPREF"):
            return True
        parts: list[Any] = []
        repeats = within
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            low, high, part = argument
            parts, repeats = [part], within or high > max(1, low)
        elif name == "SUBPATTERN":
            parts = [argument[-1]]
        elif name == "BRANCH":
            parts = list(argument[1])
        elif name in ("ASSERT", "ASSERT_NOT"):
            parts = [argument[1]]
        elif name == "ATOMIC_GROUP":
            parts = [argument]
        if any(_has_nested_repeat(part, within=repeats) for part in parts):
            return True
    return False
