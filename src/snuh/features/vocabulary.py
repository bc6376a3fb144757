"""Choosing the terms of a vocabulary from the counts of a corpus."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from snuh.errors import InputError
from snuh.features.words import WordCounts

Frequency = int | float  # an int is a number of documents, a float a fraction of them


class Vocabulary(NamedTuple):
    """Terms in ascending order and the smooth inverse document frequency of each."""

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
    """Return the words within the limits; of too many, those that occur most often, ties by alphabet."""
    if counts.documents == 0:
        raise InputError("expected at least 1 document to learn a vocabulary from, got 0")
    least, most = _documents(min_df, counts.documents), _documents(max_df, counts.documents)
    if counts.documents == 1 and not least <= 1 <= most:
        raise InputError(
            "there is only 1 document to learn a vocabulary from, too few for "
            f"min_df={min_df} and max_df={max_df}: give more documents"
        )
    if least > most:
        too_few = isinstance(min_df, int)  # and max_df is a fraction
        raise InputError(
            f"no word can be in at least {least:g} (min_df={min_df}) and at most {most:g} (max_df={max_df}) "
            f"of {counts.documents} documents: "
            + ("give more documents, or raise max_df" if too_few else "lower min_df or raise max_df")
        )
    words = [word for word in counts.totals if word not in stop_words]
    terms = [word for word in words if least <= counts.in_documents[word] <= most]
    if not terms:
        raise InputError(_what_removed_all(counts, words, least, min_df=min_df, max_df=max_df))
    if len(terms) > max_terms:
        terms = sorted(terms, key=lambda term: (-counts.totals[term], term))[:max_terms]
    terms.sort()
    in_documents = np.array([counts.in_documents[term] for term in terms], dtype=np.float64)
    return Vocabulary(terms, np.log((1.0 + counts.documents) / (1.0 + in_documents)) + 1.0)


def _documents(frequency: Frequency, documents: int) -> float:
    return frequency * documents if isinstance(frequency, float) else frequency


def _what_removed_all(
    counts: WordCounts, words: list[str], least: float, *, min_df: Frequency, max_df: Frequency
) -> str:
    documents = "1 document" if counts.documents == 1 else f"{counts.documents} documents"
    seen = f"no term is left: {documents} held {len(counts.totals)} distinct words"
    if not counts.totals:
        return f"{seen}: check the texts and token_pattern"
    too_rare = sum(counts.in_documents[word] < least for word in words)
    removed = {
        "stop_words": len(counts.totals) - len(words),
        f"min_df={min_df}": too_rare,
        f"max_df={max_df}": len(words) - too_rare,
    }
    parts = ", ".join(f"{setting} removed {number}" for setting, number in removed.items() if number)
    if words and not too_rare and all(counts.in_documents[word] == counts.documents for word in words):
        parts += ": every document has the same words, give documents that differ"
    return f"{seen}; {parts}"
