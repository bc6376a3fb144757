"""Why a document was found: the words that made the bits it shares with the query, and those it does not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from snuh.explain.pushes import Pushes, readable_parts, word_pushes
from snuh.explain.spans import Span, term_spans
from snuh.model import Model


@dataclass(frozen=True, slots=True)
class BitPair:
    """One bit in the codes of the query and of the hit.

    A margin is how far the bit is above its threshold (set) or below it, before the activation.
    """

    bit: int
    query: bool
    hit: bool
    query_margin: float
    hit_margin: float

    @property
    def agrees(self) -> bool:
        """Whether both codes have the same bit."""
        return self.query == self.hit


@dataclass(frozen=True, slots=True)
class WordShare:
    """A word of one text, and its share in the bits of that text's code.

    A share is the sum, over the bits in question, of the word's push towards the value that the bit has:
    positive where the word made the bits what they are, negative where it worked against them.
    """

    word: str
    agreeing: float
    """Its share in the bits that both codes have in common."""
    differing: float
    """Its share in the bits in which the codes differ."""
    spans: tuple[Span, ...]
    """Where it stands in the text."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why two texts are as near as they are; words with the largest share in the agreeing bits first."""

    distance: int
    bits: tuple[BitPair, ...]
    query_words: tuple[WordShare, ...]
    hit_words: tuple[WordShare, ...]


def explain(model: Model, query: str, hit: str) -> Explanation:
    """Return which words of two texts made their codes agree, and which made them differ.

    It is exact: the margins of a text are the sums of its words' pushes and of what is the same for every
    text (`word_pushes`). A text without any known word has no words here. InputError for a model that takes
    no texts, or whose encoder has more than one layer.
    """
    of_query, of_hit = word_pushes(model, query), word_pushes(model, hit)
    agrees = of_query.bits == of_hit.bits
    rows = zip(of_query.bits, of_hit.bits, of_query.margins, of_hit.margins, strict=True)
    return Explanation(
        distance=int((~agrees).sum()),
        bits=tuple(
            BitPair(number, bool(left), bool(right), float(left_margin), float(right_margin))
            for number, (left, right, left_margin, right_margin) in enumerate(rows)
        ),
        query_words=_word_shares(model, query, of_query, agrees),
        hit_words=_word_shares(model, hit, of_hit, agrees),
    )


def _word_shares(
    model: Model, text: str, made_by: Pushes, agrees: NDArray[np.bool_]
) -> tuple[WordShare, ...]:
    features, _ = readable_parts(model)
    spans = term_spans(text, features)
    towards = made_by.pushes * np.where(made_by.bits, 1.0, -1.0)  # (words, bits)
    agreeing, differing = towards[:, agrees].sum(axis=1), towards[:, ~agrees].sum(axis=1)
    shares = [
        WordShare(word, float(agreeing[row]), float(differing[row]), tuple(spans[word]))
        for row, word in enumerate(made_by.words)
    ]
    return tuple(sorted(shares, key=lambda share: (-share.agreeing, share.word)))
