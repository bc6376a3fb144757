"""Search a source for the documents nearest to one query, in a single pass."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snuh.corpus import Document
from snuh.encoding import EncodedBatch
from snuh.errors import InputError, MissingExtraError
from snuh.index import nearest
from snuh.model import Model
from snuh.text import html_table, sanitize, shorten


@dataclass(frozen=True, slots=True)
class Hit:
    """A document and how many bits of its code differ from the query's."""

    distance: int
    document: Document
    score: float | None = None  # set unless hits are ordered by distance: higher is better
    matched: tuple[str, ...] | None = None  # words of the query that the document has; None if unknown
    word_score: float | None = None  # what the words contributed to the score
    code_score: float | None = None  # what the code contributed


class Hits(list[Hit]):
    """The hits of a query, the best first: a list that is shown as a table and converts to a DataFrame.

    Attributes:
        note: a sentence on what a reader should know of these hits, such as words that no document has.
    """

    def __init__(self, hits: Iterable[Hit] = (), *, note: str | None = None) -> None:
        super().__init__(hits)
        self.note = note

    def to_records(self) -> list[dict[str, Any]]:
        """Return a flat dict for each hit: id, distance, score, text, labels, split, and its metadata.

        A metadata field of one of these names is prefixed with "metadata.".
        """
        return [_record(hit) for hit in self]

    def to_pandas(self) -> Any:  # a DataFrame; pandas is optional
        """Return a pandas DataFrame with a row for each hit; columns as in `to_records`."""
        try:
            import pandas as pd
        except ModuleNotFoundError:
            raise MissingExtraError("to_pandas needs pandas: pip install pandas") from None
        return pd.DataFrame.from_records(self.to_records(), columns=None if self else RECORD_FIELDS)

    def __repr__(self) -> str:
        lines = [f"{hit.distance:4}  {hit.document.id}  {_start(hit.document.text)}" for hit in self]
        note = [] if self.note is None else [f"note: {self.note}"]
        return "\n".join([f"{len(self)} hits: distance, id, text", *lines, *note])

    def _repr_html_(self) -> str:
        rows = [
            (
                hit.distance,
                "" if hit.score is None else f"{hit.score:.3f}",
                hit.document.id,
                _start(hit.document.text),
            )
            for hit in self
        ]
        return html_table(rows, header=("distance", "score", "id", "text"))


RECORD_FIELDS = ("id", "distance", "score", "text", "labels", "split")


def _record(hit: Hit) -> dict[str, Any]:
    document = hit.document
    values = (
        document.id,
        hit.distance,
        hit.score,
        document.text,
        list(document.labels),
        document.split,
    )
    metadata = {
        f"metadata.{name}" if name in RECORD_FIELDS else name: value
        for name, value in document.metadata.items()
    }
    return dict(zip(RECORD_FIELDS, values, strict=True)) | metadata


def _start(text: str) -> str:
    return shorten(" ".join(sanitize(text[:1000], multiline=True).split()), 100)


def check_query(text: str) -> str:
    """Return a query; InputError if it is empty."""
    if not text.strip():
        raise InputError("the query is empty: expected at least one word")
    return text


def no_known_words(text: str) -> str:
    """Return the note on a query without a word that the model knows."""
    query = shorten(" ".join(text.split()))
    return f"the model knows no word of {query!r}: use words that occur in its training documents"


def search_source(model: Model, text: str, batches: Iterable[EncodedBatch], *, k: int) -> Hits:
    """Return the k nearest documents, ordered by (distance, position); skip documents without known words."""
    if model.features is None:
        raise InputError("this model was trained on a feature matrix: it cannot encode text")
    row = model.features.transform([check_query(text)])
    if not row.nnz:
        return Hits(note=no_known_words(text))
    query = model.encoder.encode(row)
    best: list[Hit] = []
    for batch in batches:
        # The sort is stable, so ties keep the order of the source.
        best = sorted([*best, *_batch_hits(query, batch, k)], key=lambda hit: hit.distance)[:k]
    return Hits(best)


def _batch_hits(query: NDArray[np.uint8], batch: EncodedBatch, k: int) -> list[Hit]:
    known = np.flatnonzero(batch.known)
    neighbors = nearest(query, batch.codes[known], k=k)
    pairs = zip(known[neighbors.rows[0]], neighbors.distances[0], strict=True)
    return [Hit(int(distance), batch.documents[row]) for row, distance in pairs]
