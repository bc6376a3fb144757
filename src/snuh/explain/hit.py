"""Explain a hit by the contributions of words to the bits that its code shares with the query's.

An encoder with one linear layer sets bit j if `activation(x @ W + b)[j] > threshold[j]`. For a monotonically
increasing activation, that is the case if the margin

    margin[j] = sum over words w of x[w] W[w, j]  +  b[j] - inverse(threshold[j])

is above 0: each word contributes to each margin, and the rest is the same for every text. For a periodic
activation (a cosine) the effect of a word depends on the other words, and there is no such sum.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from snuh.codes import unpack
from snuh.corpus import Document
from snuh.encoder import Floats, inverse
from snuh.errors import InputError
from snuh.features import TfidfFeatures, unit_rows
from snuh.features.analyzer import segment
from snuh.features.tfidf import text_batches
from snuh.model import Model

Span: TypeAlias = tuple[int, int]  # start and end offsets, as in a slice

VECTOR = "[vector]"  # stands for a vector among the words; no term has brackets
WITHOUT_VECTORS = "explained by words alone: the vectors are not stored, and no embedding makes them here"
MAX_SPAN_CHARACTERS = 100_000  # of a text, in which words are located
MAX_HIT_CHARACTERS = 10_000  # the same, of each of many hits
BATCH_CHARACTERS = 500_000  # of hits that are explained at a time


@dataclass(frozen=True, eq=False)
class Contributions:
    """The contributions of the words of a text to the bits of its code."""

    terms: tuple[str, ...]
    """The known terms of the text, in the order of the vocabulary."""
    words: tuple[str, ...]
    """The same, as people write them; a vector is one item, VECTOR, after the words."""
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


def word_contributions(model: Model, text: str, *, vector: Any = None) -> Contributions:
    """Return the contribution of each word of a text, and of its vector, to each bit of its code."""
    if not isinstance(text, str):
        raise InputError(f"expected a text, got {type(text).__name__}")
    (contributions,) = _all_contributions(model, [text], [vector])
    return contributions


def _all_contributions(
    model: Model, texts: Sequence[str], vectors: Sequence[Any] | None = None
) -> Iterator[Contributions]:
    """Yield the contributions of the words and the vector of each text; all are encoded at once."""
    features, _ = readable_parts(model)
    layer = model.encoder.layers[0]
    weight, terms = layer.weight, model.encoder.terms
    given = vectors or [None] * len(texts)
    documents = [Document("", text, vector=vector) for text, vector in zip(texts, given, strict=True)]
    rows = model.document_rows(documents, threads=1)
    bits = unpack(model.encoder.encode(rows))
    if model.encoder.unit_rows:
        rows = unit_rows(rows)
    constant = layer.bias - inverse(layer.activation, model.encoder.threshold)
    for text in range(len(texts)):
        part = slice(rows.indptr[text], rows.indptr[text + 1])
        columns = rows.indices[part]
        contributions = rows.data[part, None].astype(np.float64) * weight[columns]
        words = columns[columns < terms]
        has_vector = len(words) < len(columns)
        if has_vector:
            of_vector = contributions[len(words) :].sum(axis=0, keepdims=True)
            contributions = np.concatenate([contributions[: len(words)], of_vector])
        item = (VECTOR,) if has_vector else ()
        yield Contributions(
            terms=(*(features.terms[column] for column in words), *item),
            words=(*(features.words[column] for column in words), *item),
            contributions=contributions,
            constant=constant,
            bits=bits[text],
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
    return model.features, layers[0].weight[: model.encoder.terms]


def term_spans(
    text: str, features: TfidfFeatures, words: Collection[str] | None = None
) -> dict[str, list[Span]]:
    """Return the spans of vocabulary terms in a text (or of some of them), in order of occurrence.

    A term has as many spans as the features count; those of paired characters overlap.
    """
    wanted = set(features.terms if words is None else words)
    spans: dict[str, list[Span]] = {}
    expand = features.analyzer.expand
    for start, end in segment(text):  # as Analyzer.tokens does, without an object for each word
        for term in expand(text[start:end]):
            if term in wanted:
                spans.setdefault(term, []).append((start, end))
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
    note: str | None = None
    """That vectors are not known here, so that the codes explained are those of words alone."""


class HitWords(NamedTuple):
    """The words of a hit: `agreeing` is their net contribution; and the spans of other terms."""

    words: tuple[WordContribution, ...]
    matched: dict[str, list[Span]]


def explain(
    model: Model, query: str, hit: str, *, query_vector: Any = None, hit_vector: Any = None
) -> Explanation:
    """Return the words of two texts, and their vectors, that make their codes agree or differ.

    The explanation is exact: the margins of a text are the sums of its words' contributions, that of its
    vector, and a constant (`word_contributions`). A vector that is not given is made by the model's
    embedding; without one, the text's words alone are explained, and a note says so.

    Raises:
        InputError: For a model that takes no texts, or whose encoder has more than one layer.
    """
    features, _ = readable_parts(model)
    left, right = _all_contributions(model, [query, hit], [query_vector, hit_vector])
    agrees = left.bits == right.bits
    rows = zip(left.bits, right.bits, left.margins, right.margins, strict=True)
    return Explanation(
        distance=int((~agrees).sum()),
        bits=tuple(
            BitPair(bit, bool(query_bit), bool(hit_bit), float(query_margin), float(hit_margin))
            for bit, (query_bit, hit_bit, query_margin, hit_margin) in enumerate(rows)
        ),
        query_words=_word_contributions(left, query, features, agrees),
        hit_words=_word_contributions(right, hit, features, agrees),
        note=WITHOUT_VECTORS
        if model.vectors is not None and not all(VECTOR in side.terms[-1:] for side in (left, right))
        else None,
    )


def explain_hits(
    model: Model,
    query: str,
    hits: Iterable[str],
    *,
    matched: Iterable[Collection[str]] | None = None,
    min_weight: float = 0.0,
) -> Iterator[HitWords]:
    """Yield the words of each hit that moved its code towards that of the query, or away from it.

    Words that occur only after the first MAX_HIT_CHARACTERS characters are left out.

    The query is encoded once and hits in batches. They are read as a stream, so that few are in memory.

    Args:
        model: that made the codes.
        query: the text that was searched for.
        hits: the texts of the hits.
        matched: for each hit, terms to locate as well, whether the model knows them or not.
        min_weight: words whose net contribution is below this fraction of the largest are left out.
    """
    features, _ = readable_parts(model)
    words_of_hits = replace(model, embed=None)  # only words are highlighted
    # The contribution to agreeing bits minus that to differing ones is the one towards the query's bits.
    signs = np.where(word_contributions(model, query).bits, 1.0, -1.0)
    terms = repeat(frozenset[str]()) if matched is None else iter(matched)
    for batch in text_batches(hits, limit=BATCH_CHARACTERS):
        for text, parts in zip(batch, _all_contributions(words_of_hits, batch), strict=True):
            net = parts.contributions @ signs  # (words,)
            strong = np.flatnonzero(np.abs(net) >= min_weight * np.abs(net).max(initial=0.0)).tolist()
            own = next(terms)
            spans = term_spans(
                text[:MAX_HIT_CHARACTERS], features, {*own, *(parts.terms[row] for row in strong)}
            )
            words = [
                WordContribution(parts.words[row], float(net[row]), 0.0, tuple(spans[parts.terms[row]]))
                for row in strong
                if parts.terms[row] in spans
            ]
            words.sort(key=lambda word: (-word.agreeing, word.word))
            yield HitWords(tuple(words), {term: spans[term] for term in own if term in spans})


def _word_contributions(
    parts: Contributions, text: str, features: TfidfFeatures, agrees: NDArray[np.bool_]
) -> tuple[WordContribution, ...]:
    spans = term_spans(text[:MAX_SPAN_CHARACTERS], features, parts.terms)
    signed = parts.contributions * np.where(parts.bits, 1.0, -1.0)  # (words, bits)
    agreeing, differing = signed[:, agrees].sum(axis=1).tolist(), signed[:, ~agrees].sum(axis=1).tolist()
    words = [
        WordContribution(word, agreeing[row], differing[row], tuple(spans.get(term, ())))
        for row, (term, word) in enumerate(zip(parts.terms, parts.words, strict=True))
    ]
    return tuple(sorted(words, key=lambda word: (-word.agreeing, word.word)))
