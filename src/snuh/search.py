"""What a search takes and returns: the query language, hits, excerpts; and a search of a source in one pass.

A query has plain words, "quoted phrases", +required and -excluded words. Anything else is plain text: nothing
in a query is an error. So is a long query: someone who pastes a paragraph does not mean its quotes and dashes
as orders.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snuh.corpus import Document
from snuh.encoding import EncodedBatch
from snuh.errors import InputError, MissingExtraError
from snuh.features.analyzer import Analyzer
from snuh.index import nearest
from snuh.model import Model
from snuh.text import html_table, sanitize, shorten


@dataclass(frozen=True, slots=True)
class Excerpt(Document):
    """A document of which only the beginning of the text was read."""

    length: int = 0  # of the whole text


def text_length(document: Document) -> int:
    """Return the length of the whole text of a document, which may be an excerpt."""
    return document.length if isinstance(document, Excerpt) else len(document.text)


def excerpt(document: Document, characters: int | None) -> Document:
    """Return a document with at most this many characters of its text."""
    if characters is None or len(document.text) <= characters:
        return document
    return Excerpt(
        document.id,
        document.text[:characters],
        document.labels,
        document.split,
        document.metadata,
        document.vector,
        length=len(document.text),
    )


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


# The query language

_PART = re.compile(r'(?:(?<=\s)|^)([+-]?)(?:"([^"]*)"|(\S+))')

MAX_WORDS = 16  # of a query that is more than plain text


@dataclass(frozen=True, slots=True)
class QueryText:
    """A parsed query."""

    text: str
    """All that is looked for: without excluded parts, signs and quotes."""
    required: tuple[str, ...] = ()
    """Words and phrases that a hit must have."""
    excluded: tuple[str, ...] = ()
    """Words and phrases that a hit must not have."""
    phrases: tuple[str, ...] = ()
    """The required ones of several words, which must be in order; some may be a single word."""
    excluded_phrases: tuple[str, ...] = ()
    """The excluded ones of several words."""

    @property
    def has_phrases(self) -> bool:
        """Whether texts must be read to determine which documents match."""
        return bool(self.phrases or self.excluded_phrases)

    def accepts(self, text: str, analyzer: Analyzer) -> bool:
        """Return whether a text has all required and no excluded words and phrases."""
        if not (self.required or self.excluded or self.has_phrases):
            return True
        positions = _positions(text, analyzer)
        return all(
            _has_phrase(positions, _positions(part, analyzer)) for part in (*self.required, *self.phrases)
        ) and not any(
            _has_phrase(positions, _positions(part, analyzer))
            for part in (*self.excluded, *self.excluded_phrases)
        )

    def surfaces(self, analyzer: Analyzer) -> dict[str, str]:
        """Return the terms that are looked for, each with the word of the query that it comes from."""
        return {token.term: self.text[token.start : token.end] for token in analyzer.tokens(self.text)}


def parse_query(query: str) -> QueryText:
    """Parse a query. A sign counts at the beginning of a word only, before a letter or digit."""
    if len(query.split()) > MAX_WORDS:
        return QueryText(query.strip())
    wanted: list[str] = []
    required: list[str] = []
    excluded: list[str] = []
    phrases: list[str] = []
    excluded_phrases: list[str] = []
    position = 0
    for match in _PART.finditer(query):
        sign, phrase, word = match.groups()
        if phrase is None and (not sign or not word[0].isalnum()):
            continue
        wanted.append(query[position : match.start()])
        position = match.end()
        content = word if phrase is None else phrase
        if sign == "-":
            (excluded if phrase is None else excluded_phrases).append(content)
        else:
            wanted.append(content)
            (required if phrase is None else phrases).append(content)
    wanted.append(query[position:])
    return QueryText(
        " ".join(part.strip() for part in wanted if part.strip()),
        tuple(required),
        tuple(excluded),
        tuple(phrases),
        tuple(excluded_phrases),
    )


def _has_phrase(found: list[set[str]], wanted: list[set[str]]) -> bool:
    """Return whether words occur one after the other; a phrase without words is everywhere."""
    return not wanted or any(
        all(wanted[step] & found[start + step] for step in range(len(wanted)))
        for start in range(len(found) - len(wanted) + 1)
    )


def _positions(text: str, analyzer: Analyzer) -> list[set[str]]:
    """Return the terms at each word of a text; an identifier and its parts are at one position."""
    positions: list[set[str]] = []
    last = None
    for token in analyzer.tokens(text):
        if (token.start, token.end) != last:
            positions.append(set())
            last = (token.start, token.end)
        positions[-1].add(token.term)
    return positions
