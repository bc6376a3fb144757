"""Explain a hit by the contributions of words to the bits that its code shares with the query's.

An encoder with one linear layer sets bit j if `activation(x @ W + b)[j] > threshold[j]`. For a monotonically
increasing activation, that is the case if the margin

    margin[j] = sum over words w of x[w] W[w, j]  +  b[j] - inverse(threshold[j])

is above 0: each word contributes to each margin, and the rest is the same for every text. For a periodic
activation (a cosine) the effect of a word depends on the other words, and there is no such sum.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from snuh.codes import unpack
from snuh.encoder import Floats, inverse
from snuh.errors import InputError
from snuh.features import TfidfFeatures, unit_rows
from snuh.features.tfidf import text_batches
from snuh.model import Model

Span: TypeAlias = tuple[int, int]  # start and end offsets, as in a slice

MAX_SPAN_CHARACTERS = 100_000  # of a text, in which words are located
BATCH_CHARACTERS = 500_000  # of hits that are explained at a time


@dataclass(frozen=True, eq=False)
class Contributions:
    """The contributions of the words of a text to the bits of its code."""

    terms: tuple[str, ...]
    """The known terms of the text, in the order of the vocabulary."""
    contributions: NDArray[np.float64]
    """The contribution of each term to each margin, (terms, bits)."""
    constant: NDArray[np.float64]
    """The margins of a text without words, (bits,); infinite if no text can change the bit."""
    bits: NDArray[np.bool_]
    """The bits of the code, (bits,)."""

    @property
    def margins(self) -> NDArray[np.float64]:
        """The distance of each bit above (set) or below its threshold, before the activation, (bits,)."""
        margins: NDArray[np.float64] = self.contributions.sum(axis=0) + self.constant
        return margins


def word_contributions(model: Model, text: str) -> Contributions:
    """Return the contribution of each word of a text to each bit of its code."""
    if not isinstance(text, str):
        raise InputError(f"expected a text, got {type(text).__name__}")
    (contributions,) = _all_contributions(model, [text])
    return contributions


def _all_contributions(model: Model, texts: Sequence[str]) -> Iterator[Contributions]:
    """Yield the contributions of the words of each text; all texts are encoded at once."""
    features, weight = readable_parts(model)
    layer = model.encoder.layers[0]
    rows = features.transform(texts, threads=1)
    bits = unpack(model.encoder.encode(rows))
    if model.encoder.unit_rows:
        rows = unit_rows(rows)
    constant = layer.bias - inverse(layer.activation, model.encoder.threshold)
    for text in range(len(texts)):
        part = slice(rows.indptr[text], rows.indptr[text + 1])
        columns = rows.indices[part]
        contributions = rows.data[part, None].astype(np.float64) * weight[columns]
        yield Contributions(
            tuple(features.terms[column] for column in columns), contributions, constant, bits[text]
        )


def readable_parts(model: Model) -> tuple[TfidfFeatures, Floats]:
    """Return the features and the weights (terms, bits); raise InputError if words do not add up."""
    if model.features is None:
        raise InputError(
            "this model was trained on a matrix of features: only models of texts can be explained by words"
        )
    layers = model.encoder.layers
    if len(layers) != 1:
        raise InputError(
            f"expected an encoder of one linear layer, got {len(layers)} layers: in a deeper one "
            "words have no separate contributions to a bit"
        )
    if not layers[0].is_monotonic:
        raise InputError(
            f"expected an encoder with an increasing activation, got {layers[0].activation}: with others "
            "words have no separate contributions to a bit; use a model of another method"
        )
    return model.features, layers[0].weight


def term_spans(
    text: str, features: TfidfFeatures, words: Collection[str] | None = None
) -> dict[str, list[Span]]:
    """Return the spans of vocabulary terms in a text (or of some of them), in order of occurrence.

    A term has as many spans as the features count; those of paired characters overlap.
    """
    wanted = set(features.terms if words is None else words)
    spans: dict[str, list[Span]] = {}
    for token in features.analyzer.tokens(text):
        if token.term in wanted:
            spans.setdefault(token.term, []).append((token.start, token.end))
    return spans


@dataclass(frozen=True, slots=True)
class BitPair:
    """One bit in the codes of the query and of the hit.

    A margin is the distance of the bit above (set) or below its threshold, before the activation.
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
    """A word of a text and its contributions to the bits of the text's code.

    A contribution is the sum over some bits, signed by the value of each bit: positive if the word moves the
    bits towards their values, negative if it moves them away.
    """

    word: str
    agreeing: float
    """Its contribution to the bits in which both codes agree."""
    differing: float
    """Its contribution to the bits in which the codes differ."""
    spans: tuple[Span, ...]
    """Its spans in the first MAX_SPAN_CHARACTERS characters of the text."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why two codes are near; words with the largest contribution to the agreeing bits first."""

    distance: int
    bits: tuple[BitPair, ...]
    query_words: tuple[WordContribution, ...]
    hit_words: tuple[WordContribution, ...]


def explain(model: Model, query: str, hit: str) -> Explanation:
    """Return the words of two texts that make their codes agree or differ.

    The explanation is exact: the margins of a text are the sums of its words' contributions and a constant
    (`word_contributions`).

    Raises:
        InputError: For a model that takes no texts, or whose encoder has more than one layer.
    """
    (explanation,) = explain_hits(model, query, [hit])
    return explanation


def explain_hits(model: Model, query: str, hits: Iterable[str]) -> Iterator[Explanation]:
    """Explain several hits of one query, which is analysed once; see `explain`.

    Hits are read as a stream, so that few of them are in memory.
    """
    features, _ = readable_parts(model)
    readable = dict(zip(features.terms, features.words, strict=True))
    query_parts = word_contributions(model, query)
    query_spans = term_spans(query[:MAX_SPAN_CHARACTERS], features, query_parts.terms)
    for batch in text_batches(hits, limit=BATCH_CHARACTERS):
        for text, parts in zip(batch, _all_contributions(model, batch), strict=True):
            spans = term_spans(text[:MAX_SPAN_CHARACTERS], features, parts.terms)
            agrees = query_parts.bits == parts.bits
            rows = zip(query_parts.bits, parts.bits, query_parts.margins, parts.margins, strict=True)
            yield Explanation(
                distance=int((~agrees).sum()),
                bits=tuple(
                    BitPair(bit, bool(left), bool(right), float(left_margin), float(right_margin))
                    for bit, (left, right, left_margin, right_margin) in enumerate(rows)
                ),
                query_words=_word_contributions(query_parts, query_spans, agrees, readable),
                hit_words=_word_contributions(parts, spans, agrees, readable),
            )


def _word_contributions(
    parts: Contributions,
    spans: Mapping[str, Sequence[Span]],
    agrees: NDArray[np.bool_],
    readable: Mapping[str, str],
) -> tuple[WordContribution, ...]:
    signed = parts.contributions * np.where(parts.bits, 1.0, -1.0)  # (words, bits)
    agreeing, differing = signed[:, agrees].sum(axis=1), signed[:, ~agrees].sum(axis=1)
    words = [
        WordContribution(
            readable.get(term, term), float(agreeing[row]), float(differing[row]), tuple(spans.get(term, ()))
        )
        for row, term in enumerate(parts.terms)
    ]
    return tuple(sorted(words, key=lambda word: (-word.agreeing, word.word)))
