"""What a bit stands for: the words that make it 1 and those that make it 0, alike ones together.

A word tells about a bit as far as both of these say so:

- the encoder: `W[w, j] idf[w] sqrt(share[w])`, with share the part of the documents that have the word. That
  is what the word adds to the bit's spread over the documents, so that a rare word does not lead;
- the decoder, where the model has it: `(E[w, j] - mean over words) sqrt(share[w])`, how much likelier the bit
  makes the word.

Each is divided by its standard deviation over the words; the score is the geometric mean of the two, and 0
where they disagree on the sign.

A bit splits the documents into two halves with several themes each, and its best words, in one row, read
like a riddle. So words whose rows of W (and E) point the same way are put together, the themes with the
largest sum of scores first; those far below the first are left out.
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

CANDIDATES = 80  # words of a bit that are sorted into themes; more where more are asked for
WORDS_PER_THEME = 4
WEAKEST_THEME = 0.1  # of the sum of the strongest on that side


@dataclass(frozen=True, slots=True)
class BitMeaning:
    """The words that tell most about one bit, as themes: groups of words that the codes treat alike."""

    bit: int
    on: tuple[Theme, ...]
    """Of documents where the bit is 1."""
    off: tuple[Theme, ...]
    """Of documents where the bit is 0."""
    balance: float | None
    """Which part of the training documents has a 1; None where the model does not know."""
    uses_decoder: bool
    """Whether the model has a decoder to be asked too; else the words are those of the encoder alone."""


def bit_meanings(model: Model, *, words: int = 10) -> list[BitMeaning]:
    """Return what each bit of a model's codes stands for, in at most `words` words a side.

    InputError for a model that takes no texts, or whose encoder has more than one layer.
    """
    if words < 1:
        raise InputError(f"words must be at least 1, got {words}")
    features, weight = readable_parts(model)
    embedding = model.word_embedding()
    share = np.exp(1.0 - features.idf)  # by the definition of idf, (1 + documents with the word) / (1 + all)
    scores = _standardised(weight * (features.idf * np.sqrt(share))[:, None])  # (terms, bits)
    rows = [_unit(weight)]
    if embedding is not None:
        centred = embedding.astype(np.float64) - np.average(embedding, axis=0, weights=share)
        scores = _agreed(scores, _standardised(centred * np.sqrt(share)[:, None]))
        rows.append(_unit(centred))
    joined = np.hstack(rows) / np.sqrt(len(rows))  # a product of two rows is their mean cosine

    def themes(score: Scores) -> tuple[Theme, ...]:
        best = np.argsort(-score, kind="stable")[: max(CANDIDATES, 4 * words)]
        best = best[score[best] > 0]
        alike = joined[best] @ joined[best].T >= _alike_from(model.bits)
        groups = [best[group] for group in _groups(score[best], alike)]
        return _shortened([[features.terms[term] for term in group] for group in groups], words)

    balance = _balance(model)
    return [
        BitMeaning(bit, themes(column), themes(-column), balance[bit], embedding is not None)
        for bit, column in enumerate(scores.T)
    ]


def _standardised(scores: Scores) -> Scores:
    """Divide each column by its standard deviation, so that those of encoder and decoder can be joined."""
    deviation = scores.std(axis=0)
    return scores / np.where(deviation > 0, deviation, 1.0)


def _agreed(left: Scores, right: Scores) -> Scores:
    """Return the geometric mean of two scores of one sign, and 0 where the signs differ."""
    product = left * right
    agreed: Scores = np.sign(left) * np.sqrt(np.maximum(product, 0.0))
    return agreed


def _unit(rows: NDArray[np.floating]) -> Scores:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Scores = rows / np.where(lengths > 0, lengths, 1.0)
    return unit


def _alike_from(bits: int) -> float:
    """Return the cosine from which two words belong together; by chance it spreads by 1 / sqrt(bits)."""
    return 0.3 + 1.2 / math.sqrt(bits)


def _groups(scores: Scores, alike: NDArray[np.bool_]) -> list[NDArray[np.intp]]:
    """Sort words into groups, each around the one that those like it support most; the best group first.

    Args:
        scores: of the words, above 0, in descending order.
        alike: which of them belong together, (words, words).
    """
    alike = alike | np.eye(len(scores), dtype=bool)
    groups: list[NDArray[np.intp]] = []
    left = np.ones(len(scores), dtype=bool)
    strongest = 0.0
    while left.any():
        support = np.where(left, alike @ (scores * left), 0.0)
        centre = int(np.argmax(support))
        strongest = max(strongest, support[centre])
        if support[centre] < WEAKEST_THEME * strongest:
            break
        members = left & alike[centre]
        groups.append(np.flatnonzero(members))
        left &= ~members
    return groups


def _shortened(groups: list[list[str]], words: int) -> tuple[Theme, ...]:
    """Keep the first words of each group, and as many groups as make `words` words in all."""
    themes: list[Theme] = []
    for group in groups:
        room = words - sum(len(theme) for theme in themes)
        if room <= 0:
            break
        themes.append(tuple(group[: min(room, WORDS_PER_THEME)]))
    return tuple(themes)


def _balance(model: Model) -> list[float | None]:
    """Read which part of the training documents sets each bit, which older models did not write down."""
    shares = model.training.get("ones_share")
    if not isinstance(shares, list) or len(shares) != model.bits:
        return [None] * model.bits
    return [float(share) if isinstance(share, int | float) else None for share in shares]
