"""The nearest documents of a source to one query, in one pass and little memory."""

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


class UnknownWordsError(InputError):
    """A query without any word that the model knows."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A document and how many bits of its code differ from the query's."""

    distance: int
    document: Document
    score: float | None = None  # what the hits were ordered by where it is not the distance; more is better


def encode_query(model: Model, text: str) -> NDArray[np.uint8]:
    """Return the code of a query (1, bytes); UnknownWordsError where the model knows none of its words."""
    if model.features is None:
        raise InputError("this model was trained on a matrix of features: it cannot read a text")
    row = model.features.transform([text])
    if not row.nnz:
        raise unknown_words(text)
    return model.encoder.encode(row)


def unknown_words(text: str) -> UnknownWordsError:
    """Return what to raise for a text of which the model knows no word."""
    if not text.strip():
        return UnknownWordsError("the query is empty: expected some words to look for")
    return UnknownWordsError(
        f"the model knows no word of the query {_shortened(text)!r}: "
        "use words that the documents it learnt from have in common"
    )


def nearest_hits(query: NDArray[np.uint8], batches: Iterable[EncodedBatch], *, k: int) -> list[Hit]:
    """Return the k nearest documents, by (distance, order); those without a known word are left out."""
    best: list[Hit] = []
    for batch in batches:
        found = _hits_of_batch(query, batch, k)
        # The sort is stable, and what came first in the source comes first here.
        best = sorted([*best, *found], key=lambda hit: hit.distance)[:k]
    return best


def _hits_of_batch(query: NDArray[np.uint8], batch: EncodedBatch, k: int) -> list[Hit]:
    known = np.flatnonzero(batch.known)
    found = nearest(query, batch.codes[known], k=k)
    pairs = zip(known[found.rows[0]], found.distances[0], strict=True)
    return [Hit(int(distance), batch.documents[row]) for row, distance in pairs]


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:57]}..."
