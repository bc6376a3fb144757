"""Describe a bit by the words of documents where it is 1 and of those where it is 0, grouped into themes.

The score of a word for a bit combines

- the encoder: `W[w, j] idf[w] sqrt(df[w])`, with df the fraction of the documents that have the word. This is
  the word's contribution to the bit's standard deviation over the documents, so rare words do not dominate;
- the decoder, if the model has one: `(E[w, j] - mean over words) sqrt(df[w])`, how much the bit raises the
  probability of the word.

Each is divided by its standard deviation over the words. The score is the geometric mean of the two, and 0 if
their signs differ.

Each value of a bit covers several themes, so a plain list of its best words is hard to read. Words whose rows
of W (and E) point in the same direction are therefore grouped, the themes with the largest sum of scores
first; themes far weaker than the first are left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from snuh.errors import InputError
from snuh.explain.hit import readable_parts
from snuh.model import Model

Theme: TypeAlias = tuple[str, ...]
Scores: TypeAlias = NDArray[np.float64]

CANDIDATES = 80  # words of a bit that are grouped into themes; more if more words are requested
WORDS_PER_THEME = 4
MIN_THEME_FRACTION = 0.1  # of the sum of scores of the strongest theme


@dataclass(frozen=True, slots=True)
class BitMeaning:
    """The most indicative words of one bit, as themes: groups of words that the codes treat alike."""

    bit: int
    on: tuple[Theme, ...]
    """Themes of documents where the bit is 1."""
    off: tuple[Theme, ...]
    """Themes of documents where the bit is 0."""
    balance: float | None
    """Fraction of the training documents where the bit is 1; None if the model does not record it."""
    uses_decoder: bool
    """Whether the scores combine encoder and decoder; otherwise they are those of the encoder alone."""


def bit_meanings(model: Model, *, words: int = 10) -> list[BitMeaning]:
    """Describe each bit of a model's codes by at most `words` words for either value.

    Raises:
        InputError: For a model that takes no texts, or whose encoder has more than one layer.
    """
    if words < 1:
        raise InputError(f"words must be at least 1, got {words}")
    features, weight = readable_parts(model)
    embedding = model.word_embedding()
    df = np.exp(1.0 - features.idf)  # by the definition of idf: (1 + documents with the word) / (1 + all)
    scores = _standardized(weight * (features.idf * np.sqrt(df))[:, None])  # (terms, bits)
    rows = [_unit(weight)]
    if embedding is not None:
        centered = embedding.astype(np.float64) - np.average(embedding, axis=0, weights=df)
        scores = _geometric_mean(scores, _standardized(centered * np.sqrt(df)[:, None]))
        rows.append(_unit(centered))
    vectors = np.hstack(rows) / np.sqrt(len(rows))  # the product of two of them is their mean cosine

    def themes(score: Scores) -> tuple[Theme, ...]:
        best = np.argsort(-score, kind="stable")[: max(CANDIDATES, 4 * words)]
        best = best[score[best] > 0]
        alike = vectors[best] @ vectors[best].T >= _min_cosine(model.bits)
        groups = [best[group] for group in _group(score[best], alike)]
        return _truncate([[features.words[term] for term in group] for group in groups], words)

    balance = _balance(model)
    return [
        BitMeaning(bit, themes(column), themes(-column), balance[bit], embedding is not None)
        for bit, column in enumerate(scores.T)
    ]


def _standardized(scores: Scores) -> Scores:
    """Divide each column by its standard deviation, so that encoder and decoder are comparable."""
    deviation = scores.std(axis=0)
    return scores / np.where(deviation > 0, deviation, 1.0)


def _geometric_mean(left: Scores, right: Scores) -> Scores:
    """Return the signed geometric mean of two scores, 0 if their signs differ."""
    mean: Scores = np.sign(left) * np.sqrt(np.maximum(left * right, 0.0))
    return mean


def _unit(rows: NDArray[np.floating]) -> Scores:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Scores = rows / np.where(norms > 0, norms, 1.0)
    return unit


def _min_cosine(bits: int) -> float:
    """Return the minimum cosine of two words of a theme; that of random vectors varies by 1 / sqrt(bits)."""
    return 0.3 + 1.2 / math.sqrt(bits)


def _group(scores: Scores, alike: NDArray[np.bool_]) -> list[NDArray[np.intp]]:
    """Group words greedily around the word whose similar words have the largest sum of scores.

    Args:
        scores: of the words, above 0, in descending order.
        alike: which pairs of words are similar, (words, words).
    """
    alike = alike | np.eye(len(scores), dtype=bool)
    groups: list[NDArray[np.intp]] = []
    remaining = np.ones(len(scores), dtype=bool)
    strongest = 0.0
    while remaining.any():
        support = np.where(remaining, alike @ (scores * remaining), 0.0)
        center = int(np.argmax(support))
        strongest = max(strongest, support[center])
        if support[center] < MIN_THEME_FRACTION * strongest:
            break
        members = remaining & alike[center]
        groups.append(np.flatnonzero(members))
        remaining &= ~members
    return groups


def _truncate(groups: list[list[str]], words: int) -> tuple[Theme, ...]:
    """Keep the first words of each group, up to `words` words in total."""
    themes: list[Theme] = []
    for group in groups:
        budget = words - sum(len(theme) for theme in themes)
        if budget <= 0:
            break
        themes.append(tuple(group[: min(budget, WORDS_PER_THEME)]))
    return tuple(themes)


def _balance(model: Model) -> list[float | None]:
    """Return the fraction of the training documents where each bit is 1; older models do not record it."""
    fractions = model.training.get("ones_fraction")
    if not isinstance(fractions, list) or len(fractions) != model.bits:
        return [None] * model.bits
    return [float(value) if isinstance(value, int | float) else None for value in fractions]
