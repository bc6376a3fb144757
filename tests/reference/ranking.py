"""BM25 and its sum with the scores of codes, written out term by term."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from snuh.codes import unpack
from snuh.collection.query import FEEDBACK_CHARACTERS, FEEDBACK_CODE_WEIGHT, FEEDBACK_DOCUMENTS
from snuh.index.bm25 import K1, MAX_COUNT, B
from snuh.model import Model


def bm25(documents: list[list[str]], query: Mapping[str, float]) -> list[float]:
    """Return the score of each document for the words of a query with their weights."""
    mean = max(1.0, sum(map(len, documents)) / max(1, len(documents)))
    scores = []
    for document in documents:
        total = 0.0
        for word, weight in query.items():
            tf = min(MAX_COUNT, document.count(word))
            total += (
                weight * idf(documents, word) * tf * (K1 + 1) / (tf + K1 * (1 - B + B * len(document) / mean))
            )
        scores.append(total)
    return scores


def idf(documents: list[list[str]], word: str) -> float:
    """Return how telling a word is."""
    df = sum(word in document for document in documents)
    return math.log(1 + (len(documents) - df + 0.5) / (df + 0.5))


def hybrid(model: Model, texts: list[str], query: str, *, chosen: Sequence[int]) -> list[float] | None:
    """Return the sum of the standardized scores of words and codes; a text without a code has a mean one.

    It is NaN for texts that have neither a code nor a word of the query. The words and codes of the ten best
    among the chosen texts are added to the query; None if these are not clear.
    """
    assert model.features is not None
    analyzer = model.features.analyzer
    documents = [analyzer.terms(text) for text in texts]
    row, rows = model.features.transform([query]), model.features.transform(texts)
    has_code = np.diff(rows.indptr) > 0
    signs = np.zeros((len(texts), model.bits))
    signs[has_code] = 2.0 * unpack(model.encoder.encode(rows[np.flatnonzero(has_code)])) - 1.0

    def scores(words: Mapping[str, float], margins: np.ndarray, *, code_weight: float = 1.0) -> np.ndarray:
        by_words, by_code = np.array(bm25(documents, words)), np.zeros(len(texts))
        by_code[has_code] = code_weight * np.array(standardized((signs[has_code] @ margins).tolist()))
        sums = np.array(standardized(by_words.tolist())) + by_code
        return np.where(has_code | (by_words > 0), sums, np.nan)

    words = Counter(analyzer.terms(query))
    margins = model.encoder.margins(row)[0]
    first = scores(words, margins, code_weight=FEEDBACK_CODE_WEIGHT)
    ranked = sorted((index for index in chosen if np.isfinite(first[index])), key=lambda index: -first[index])
    for one, other in pairwise(ranked[: FEEDBACK_DOCUMENTS + 1]):
        if first[one] - first[other] < 1e-4 and documents[one] != documents[other]:
            return None  # rounding decides which of the two counts more
    best = ranked[:FEEDBACK_DOCUMENTS]
    related: Counter[str] = Counter()
    direction = np.zeros(model.bits)
    for rank, index in enumerate(best, start=1):
        terms = analyzer.terms(texts[index][:FEEDBACK_CHARACTERS])
        for term in terms:
            related[term] += 1.0 / (rank * len(terms))  # type: ignore[assignment]
        direction += signs[index] / rank
    telling = {term: weight * idf(documents, term) for term, weight in related.items()}
    telling = dict(sorted(telling.items(), key=lambda item: -item[1])[:30])
    total = sum(telling.values()) or 1.0
    weights = {
        term: 0.5 * words[term] / sum(words.values()) + 0.5 * telling.get(term, 0.0) / total
        for term in {*words, *telling}
    }
    return scores(weights, unit(margins) + unit(direction)).tolist()


def unit(vector: np.ndarray) -> np.ndarray:
    """Scale to length 1."""
    return vector / max(float(np.linalg.norm(vector)), 1e-12)


def standardized(scores: list[float]) -> list[float]:
    """Subtract the mean and divide by the standard deviation; zeros if all are the same."""
    mean = sum(scores) / max(1, len(scores))
    variance = sum((score - mean) ** 2 for score in scores) / max(1, len(scores))
    return [(score - mean) / math.sqrt(variance) if variance > 1e-9 else 0.0 for score in scores]
