"""Why a document was found: the words that made the bits it shares with the query, and those it does not."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from snuh.codes import unpack
from snuh.encoder import Floats, inverse
from snuh.errors import InputError
from snuh.features import TfidfFeatures, unit_rows
from snuh.model import Model

# How the words of a text make the bits of its code.
#
# An encoder of one linear layer sets bit j where `activation(x @ W + b)[j] > threshold[j]`. Where the
# activation ascends, that is where the margin
#
#     margin[j] = sum over words w of x[w] W[w, j]  +  b[j] - inverse(threshold[j])
#
# is above 0: each word pushes each bit, up or down, and the rest is the same for every text. Where it goes up
# and down (a cosine), what a word does to a bit hangs on the other words, and there is no such sum.


@dataclass(frozen=True, eq=False)
class Contributions:
    """What makes the bits of one text's code."""

    words: tuple[str, ...]
    """The words of the text that the model knows, in the order of the vocabulary."""
    contributions: NDArray[np.float64]
    """How far each word moves each margin, (words, bits)."""
    constant: NDArray[np.float64]
    """The margin of a text without words, (bits,); infinite where no text can change the bit."""
    bits: NDArray[np.bool_]
    """The bits of the code, (bits,)."""

    @property
    def margins(self) -> NDArray[np.float64]:
        """How far each bit is above (set) or below its threshold, before the activation, (bits,)."""
        margins: NDArray[np.float64] = self.contributions.sum(axis=0) + self.constant
        return margins


def word_contributions(model: Model, text: str) -> Contributions:
    """Return what each word of a text does to each bit of its code."""
    if not isinstance(text, str):
        raise InputError(f"expected a text, got {type(text).__name__}")
    features, weight = readable_parts(model)
    layer = model.encoder.layers[0]
    row = features.transform([text])
    bits = unpack(model.encoder.encode(row))[0]
    if model.encoder.unit_rows:
        row = unit_rows(row)
    contributions = row.data[:, None].astype(np.float64) * weight[row.indices]
    constant = layer.bias - inverse(layer.activation, model.encoder.threshold)
    return Contributions(
        tuple(features.terms[column] for column in row.indices), contributions, constant, bits
    )


def readable_parts(model: Model) -> tuple[TfidfFeatures, Floats]:
    """Return the features and the weights (terms, bits); InputError where words have no say of their own."""
    if model.features is None:
        raise InputError(
            "this model was trained on a matrix of features: only a model of texts can be explained by words"
        )
    layers = model.encoder.layers
    if len(layers) != 1:
        raise InputError(
            f"expected an encoder of one linear layer, got {len(layers)} layers: in a deeper one "
            "no word has a share of its own in a bit"
        )
    if not layers[0].ascends:
        raise InputError(
            f"expected an encoder whose activation ascends, got {layers[0].activation}: where it goes up and "
            "down no word has a share of its own in a bit, use a model of another method"
        )
    return model.features, layers[0].weight


# Where the words that the features count stand in a text.

Span: TypeAlias = tuple[int, int]  # first character, and the one after the last


def term_spans(text: str, features: TfidfFeatures) -> dict[str, list[Span]]:
    """Return where each term of the vocabulary stands in a text, in order of the text.

    A term has as many spans as the features count; the characters are those of the text as it came, before
    lower-casing.
    """
    settings = features.settings
    pattern = re.compile(settings.token_pattern)
    read = text.lower() if settings.lowercase else text
    origin = None if len(read) == len(text) else _origins(text)
    terms = set(features.terms)
    spans: dict[str, list[Span]] = {}
    for match in pattern.finditer(read):
        word = match[pattern.groups]  # the group where the pattern has one, as in `findall`
        if not word or word not in terms:
            continue
        start, end = match.span(pattern.groups)
        if origin is not None:
            start, end = origin[start], origin[end - 1] + 1
        spans.setdefault(word, []).append((start, end))
    return spans


def _origins(text: str) -> list[int]:
    """Return, for each character of the lower-cased text, which character it came from.

    A few capitals become two small characters (İ does); none becomes less than one.
    """
    return [place for place, character in enumerate(text) for _ in character.lower()]


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
class WordContribution:
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
    query_words: tuple[WordContribution, ...]
    hit_words: tuple[WordContribution, ...]


def explain(model: Model, query: str, hit: str) -> Explanation:
    """Return which words of two texts made their codes agree, and which made them differ.

    It is exact: the margins of a text are the sums of its words' pushes and of what is the same for every
    text (`word_pushes`). A text without any known word has no words here. InputError for a model that takes
    no texts, or whose encoder has more than one layer.
    """
    of_query, of_hit = word_contributions(model, query), word_contributions(model, hit)
    agrees = of_query.bits == of_hit.bits
    rows = zip(of_query.bits, of_hit.bits, of_query.margins, of_hit.margins, strict=True)
    return Explanation(
        distance=int((~agrees).sum()),
        bits=tuple(
            BitPair(number, bool(left), bool(right), float(left_margin), float(right_margin))
            for number, (left, right, left_margin, right_margin) in enumerate(rows)
        ),
        query_words=_word_contributions(model, query, of_query, agrees),
        hit_words=_word_contributions(model, hit, of_hit, agrees),
    )


def _word_contributions(
    model: Model, text: str, made_by: Contributions, agrees: NDArray[np.bool_]
) -> tuple[WordContribution, ...]:
    features, _ = readable_parts(model)
    spans = term_spans(text, features)
    towards = made_by.contributions * np.where(made_by.bits, 1.0, -1.0)  # (words, bits)
    agreeing, differing = towards[:, agrees].sum(axis=1), towards[:, ~agrees].sum(axis=1)
    shares = [
        WordContribution(word, float(agreeing[row]), float(differing[row]), tuple(spans[word]))
        for row, word in enumerate(made_by.words)
    ]
    return tuple(sorted(shares, key=lambda share: (-share.agreeing, share.word)))
