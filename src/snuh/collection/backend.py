"""The backend protocol: what a collection needs of its storage, and how a location selects a backend.

| term | meaning |
|---|---|
| seq | row number in order of insertion: positive, kept when a document is replaced, never reused |
| state | the model and the token of the last write, at one point in time |
| code | packed bits that the model assigns to a document; None if it knows none of its words |
| location | the folder of a collection, or the URL of one on a database server |

A backend is a module with the functions of `BackendModule`, imported on demand with its client library.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, ParamSpec, Protocol, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from snuh.collection.results import Added, CodeRows, IndexInfo
from snuh.corpus import Document
from snuh.errors import CollectionError, InputError, MissingExtraError
from snuh.features.analyzer import Analyzer
from snuh.filters import Filter
from snuh.io import BACKEND_MODULES, SCHEME, Location
from snuh.model import Model

logger = logging.getLogger(__name__)

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

LOCAL_MODULE = "snuh.collection.local.backend"
EXTRAS = {"psycopg": "postgres", "psycopg_pool": "postgres", "pymilvus": "milvus"}  # by imported module


@dataclass(frozen=True, slots=True)
class State:
    """A collection at one point in time."""

    model: str  # fingerprint
    bits: int
    token: str  # unique to the last write
    next_seq: int


@dataclass(frozen=True, slots=True)
class NewDocument:
    """A document to store with its code; None if the model knows none of its words."""

    document: Document
    code: bytes | None


class Match(NamedTuple):
    """The row of a document and its distance from the query."""

    distance: int
    seq: int


@dataclass(frozen=True, eq=False, slots=True)
class WordQuery:
    """A query by words, and by the code if the margins are given."""

    text: str
    required: tuple[str, ...]  # texts whose words a document must all have
    excluded: tuple[str, ...]  # texts of whose words a document must have none
    code: NDArray[np.uint8] | None  # packed, for the distance; None to rank by words alone
    margins: NDArray[np.floating] | None  # the weight of each bit and, as its sign, the bit to look for
    related: Mapping[str, float] = field(default_factory=dict)  # terms to look for as well, with weights
    code_weight: float = 1.0  # of the standardized score of the code; that of words counts 1


class RankedMatch(NamedTuple):
    """The row of a document, its scores, and its distance from the query's code."""

    seq: int
    score: float
    distance: int
    word_score: float
    code_score: float | None
    terms: frozenset[str]  # of the query that the document has


class Ranking(NamedTuple):
    """The best documents of a query, and the terms of it that any document has."""

    matches: list[RankedMatch]
    found: frozenset[str]


class LostConnectionError(CollectionError):
    """The server became unreachable before anything was written: the operation can be retried."""


def retry_once(method: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Retry a method once after a LostConnectionError, in case the server was restarted."""

    @wraps(method)
    def retried(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        try:
            return method(*args, **kwargs)
        except LostConnectionError as error:
            logger.info("retrying: %s", error)
            return method(*args, **kwargs)

    return retried


class Write(Protocol):
    """An open write transaction."""

    @property
    def state(self) -> State:
        """The state before this write."""

    def put(self, new: Sequence[NewDocument]) -> Added:
        """Insert documents, or replace those with the same id, which keep their seq.

        If an id occurs more than once, the last document wins. Raises InputError, and stores nothing, if one
        of them cannot be stored.
        """

    def delete(self, seqs: Iterable[int]) -> None:
        """Delete documents by seq."""


class Backend(Protocol):
    """An open collection; safe to share between threads.

    All calls inside a `reading` block see one state, as far as the engine supports that; outside of it, each
    call sees the latest. Every error is a SnuhError with a one-line message that starts from `name`; callers
    retry once after a LostConnectionError.
    """

    @property
    def name(self) -> str:
        """The location, with secrets redacted."""

    @property
    def folder(self) -> Path | None:
        """The folder of a local collection; None on a server."""

    @property
    def has_words(self) -> bool:
        """Whether there is an index of words: whether `rank` and `word_scores` work."""

    def close(self) -> None:
        """Close all files and connections."""

    def reading(self) -> AbstractContextManager[State]:
        """Begin a read transaction; may be nested."""

    def writing(self) -> AbstractContextManager[Write]:
        """Begin a write transaction, committed when the block ends; other writers wait."""

    def warm_cache(self, analyzer: Analyzer) -> None:
        """Prepare the next search after a write; failures are logged, not raised."""

    # The model

    def load_model(self, fingerprint: str) -> Model:
        """Load a model stored in the collection; ModelError if it is missing or damaged."""

    def rehash(self, model: Model, *, progress: Callable[[float], None] | None) -> None:
        """Encode every document with another model, then replace all codes at once.

        Searches and writes continue meanwhile. If interrupted, the old codes stay in use.
        """

    # Documents

    def count(self) -> int:
        """Return the number of documents."""

    def seqs_of(self, ids: Sequence[str]) -> dict[str, int]:
        """Return the seqs of documents by id; ids that do not exist are left out."""

    def documents_of(self, seqs: Iterable[int], *, characters: int | None = None) -> dict[int, Document]:
        """Return documents by seq; longer texts are cut to this many characters (`Excerpt`)."""

    def documents(
        self, *, after: int = 0, before: int | None = None, limit: int, where: Filter | None = None
    ) -> list[tuple[int, Document]]:
        """Return up to `limit` (seq, document) pairs with `after` < seq < `before`, ordered by seq.

        There may be fewer, but none only if there are no more documents.
        """

    def seqs_where(self, where: Filter) -> NDArray[np.int64]:
        """Return the seqs of the documents that match a filter, ascending."""

    def fields(self, *, limit: int) -> list[str]:
        """Return the metadata fields of all documents so far, sorted."""

    def has_field(self, name: str) -> bool:
        """Tell whether any document so far has had this metadata field."""

    def ids_near(self, doc_id: str, *, limit: int) -> list[str]:
        """Return up to `limit` ids on each side of `doc_id` in sorted order, for suggestions."""

    def check(self) -> list[str]:
        """Return what is wrong with the storage itself, each problem as a sentence."""

    # Codes

    def find(
        self,
        queries: NDArray[np.uint8],
        *,
        k: int,
        radius: int | None,
        where: Filter | None,
        approximate: bool,
    ) -> list[list[Match]]:
        """Return the k nearest documents of each query, ordered by (distance, seq).

        Args:
            queries: packed codes (queries, bytes), as long as those of the collection.
            k: maximum number of matches per query.
            radius: maximum distance of a match.
            where: search only matching documents; its fields have been checked.
            approximate: use the approximate index; without one, log a warning and search exactly.
        """

    def rank(self, query: WordQuery, *, analyzer: Analyzer, k: int, where: Filter | None) -> Ranking:
        """Return the k best documents for the words of a query and its margins, the best first.

        Args:
            query: what to look for.
            analyzer: of the collection's model.
            k: maximum number of matches.
            where: search only matching documents; its fields have been checked.

        Raises:
            InputError: If the backend has no index of words.
        """

    def word_scores(self, text: str, seqs: Sequence[int], *, analyzer: Analyzer) -> NDArray[np.float32]:
        """Return how much the words of documents have in common with those of a text (BM25)."""

    def check_words(self, analyzer: Analyzer) -> list[str]:
        """Return what is wrong with the index of words; nothing without one."""

    def codes_of(self, seqs: Sequence[int]) -> CodeRows:
        """Return the codes of these documents, ordered by seq; documents without a code are left out."""

    def sample_codes(self, limit: int) -> CodeRows:
        """Return up to `limit` evenly spaced codes, ordered by seq (see `evenly_spaced`)."""

    def searchable(self) -> int:
        """Return the number of documents that have a code."""

    def build_index(self, *, k: int, recall: float) -> IndexInfo:
        """Build the index that `find` uses with `approximate`, and measure its recall at k."""

    def index_info(self) -> IndexInfo | None:
        """Describe the approximate index; None if there is none for the current codes."""

    def sizes(self) -> tuple[int, int]:
        """Return the size in bytes of the documents, and of the data that only searches need."""


Put: TypeAlias = Callable[[Sequence[NewDocument]], object]


class BackendModule(Protocol):
    """The functions of a backend's module."""

    def open_backend(self, location: str, *, timeout: float) -> Backend:
        """Open a collection; InputError if there is none, CollectionError if it is unusable.

        Args:
            location: the folder or URL, as given by the user.
            timeout: seconds to wait for another writer.
        """

    def creating(self, location: str, model: Model, *, words: bool = True) -> AbstractContextManager[Put]:
        """Create a collection and yield a function to fill it; it exists only once the block has ended.

        With `words` it has an index of words, if the backend supports that.
        """

    def ensure_absent(self, location: str) -> None:
        """Raise InputError unless a collection can be created there."""

    def is_collection(self, location: str) -> bool:
        """Tell whether a collection exists there, intact or damaged; its contents are not checked."""

    def short_name(self, location: str) -> str:
        """Return the name under which a server publishes the collection by default."""


def module_of(location: Location) -> BackendModule:
    """Import the backend of a location; MissingExtraError if its client library is not installed."""
    match = SCHEME.match(location) if isinstance(location, str) else None
    if match is None:
        return cast(BackendModule, import_module(LOCAL_MODULE))
    scheme = match[1].lower()
    try:
        return cast(BackendModule, import_module(BACKEND_MODULES[scheme]))
    except ModuleNotFoundError as error:
        if (extra := EXTRAS.get(str(error.name).partition(".")[0])) is None:
            raise
        raise MissingExtraError(f'{scheme}:// needs {error.name}: pip install "snuhash[{extra}]"') from None


def ensure_absent(location: Location) -> None:
    """Raise InputError unless a collection can be created at a location."""
    module_of(location).ensure_absent(str(location))


def is_collection(location: Location) -> bool:
    """Tell whether a collection exists at a location; its contents are not checked."""
    return module_of(location).is_collection(str(location))


def short_name(location: Location) -> str:
    """Return the name under which a server publishes the collection by default."""
    return module_of(location).short_name(str(location))


# Helpers that several backends share


def refuse_words() -> InputError:
    """Return the error of a backend without an index of words."""
    return InputError('this collection has no index of words: use mode="hybrid" or mode="codes"')


class WithoutWords:
    """The part of a backend that has no index of words."""

    has_words = False

    def rank(self, query: WordQuery, *, analyzer: Analyzer, k: int, where: Filter | None) -> Ranking:
        """Refuse."""
        raise refuse_words()

    def word_scores(self, text: str, seqs: Sequence[int], *, analyzer: Analyzer) -> NDArray[np.float32]:
        """Refuse."""
        raise refuse_words()

    def check_words(self, analyzer: Analyzer) -> list[str]:
        """Return nothing."""
        return []


def by_id(new: Sequence[NewDocument], *, bits: int) -> dict[str, NewDocument]:
    """Index documents by id, the last of each id winning; CollectionError if a code has another length."""
    if any(row.code is not None and 8 * len(row.code) != bits for row in new):
        raise CollectionError(f"this collection holds {bits}-bit codes, got codes of another model")
    return {row.document.id: row for row in new}


def evenly_spaced(count: int, limit: int) -> NDArray[np.int64]:
    """Return up to `limit` evenly spaced indices below `count`, including the first and the last."""
    return np.unique(np.linspace(0, count - 1, min(limit, count)).astype(np.int64))


class HasDistance(Protocol):
    """A search result."""

    @property
    def distance(self) -> int:
        """The distance from the query."""


def recall_of(exact: Sequence[Sequence[HasDistance]], approximate: Sequence[Sequence[HasDistance]]) -> float:
    """Return the fraction of exact results that an approximate search found; 1 if there are none.

    A result counts if it is no farther than the last exact one: ties at that distance are interchangeable.
    """
    hits = sum(
        sum(result.distance <= expected[-1].distance for result in results)
        for expected, results in zip(exact, approximate, strict=True)
        if expected
    )
    total = sum(map(len, exact))
    return hits / total if total else 1.0


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
_decode = json.JSONDecoder().raw_decode  # skips the search for surrounding whitespace, which is never there


class Columns(NamedTuple):
    """A document as database columns; `labels` is a JSON list and `metadata` a JSON object."""

    id: str
    split: str | None
    labels: str
    metadata: str
    text: str


def to_columns(document: Document) -> Columns:
    """Convert a document to columns; InputError for values that are not JSON and for lone surrogates."""
    try:
        labels, metadata = _encode(document.labels), _encode(document.metadata)
        for text in (document.id, document.text, document.split or "", labels, metadata):
            text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"the document {document.id!r} cannot be stored: {error}") from error
    return Columns(document.id, document.split, labels, metadata, document.text)


def from_columns(doc_id: str, split: str | None, labels: str, metadata: str, text: str) -> Document:
    """Convert columns to a document."""
    # Often both are empty, and parsing JSON would take longer than everything else.
    label_names = tuple(_decode(labels)[0]) if labels != "[]" else ()
    return Document(doc_id, text, label_names, split, _decode(metadata)[0] if metadata != "{}" else {})


def is_storable(text: str) -> bool:
    """Tell whether a text is free of lone surrogates, which UTF-8 cannot encode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
