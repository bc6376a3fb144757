"""Search a source for the documents nearest to one query, in a single pass."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from snuh.corpus import Document
from snuh.encoding import EncodedBatch
from snuh.errors import InputError
from snuh.index import nearest
from snuh.model import Model
from snuh.text import shorten


class UnknownWordsError(InputError):
    """A query that contains no word of the model's vocabulary."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A document and how many bits of its code differ from the query's."""

    distance: int
    document: Document
    score: float | None = None  # set unless hits are ordered by distance: higher is better
    matched: tuple[str, ...] | None = None  # words of the query that the document has; None if unknown
    word_score: float | None = None  # what the words contributed to the score
    code_score: float | None = None  # what the code contributed


def encode_query(model: Model, text: str) -> NDArray[np.uint8]:
    """Return the code of a query (1, bytes); UnknownWordsError if the model knows none of its words."""
    if model.features is None:
        raise InputError("this model was trained on a feature matrix: it cannot encode text")
    row = model.features.transform([text])
    if not row.nnz:
        raise unknown_words(text)
    return model.encoder.encode(row)


def unknown_words(text: str) -> UnknownWordsError:
    """Return the error to raise for a query without known words."""
    if not text.strip():
        return UnknownWordsError("the query is empty: expected at least one word")
    query = shorten(" ".join(text.split()))
    return UnknownWordsError(
        f"the model knows no word of the query {query!r}: use words that occur in its training documents"
    )


def nearest_hits(query: NDArray[np.uint8], batches: Iterable[EncodedBatch], *, k: int) -> list[Hit]:
    """Return the k nearest documents, ordered by (distance, position); skip documents without known words."""
    best: list[Hit] = []
    for batch in batches:
        # The sort is stable, so ties keep the order of the source.
        best = sorted([*best, *_batch_hits(query, batch, k)], key=lambda hit: hit.distance)[:k]
    return best


def _batch_hits(query: NDArray[np.uint8], batch: EncodedBatch, k: int) -> list[Hit]:
    known = np.flatnonzero(batch.known)
    neighbors = nearest(query, batch.codes[known], k=k)
    pairs = zip(known[neighbors.rows[0]], neighbors.distances[0], strict=True)
    return [Hit(int(distance), batch.documents[row]) for row, distance in pairs]
