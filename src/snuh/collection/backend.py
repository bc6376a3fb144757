"""What a collection needs of the place that it is kept in: a folder, or a database server.

| term | meaning |
|---|---|
| seq | the place of a document in the order of insertion: above 0, kept when replaced, never used again |
| state | what the collection is at one moment: its model and the token of the last write |
| code | the bytes that the model makes of a document; none where it knows no word of it |

A module of a backend has the functions of `BackendModule`, and is named in `snuh.collection.backend`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, ParamSpec, Protocol, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from snuh.collection.results import Added, CodeRows, IndexInfo
from snuh.corpus import Document
from snuh.errors import CollectionError, InputError, MissingExtraError
from snuh.filters import Filter
from snuh.model import Model
from snuh.urls import MODULES, SCHEME, Address

logger = logging.getLogger(__name__)

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class State:
    """What a collection is at one moment."""

    model: str  # fingerprint
    bits: int
    token: str  # of the last write; no other write has it
    next_seq: int


@dataclass(frozen=True, slots=True)
class NewDocument:
    """A document to store with its code; None where the model knows none of its words."""

    document: Document
    code: bytes | None


class Match(NamedTuple):
    """A document found, and how far from the query."""

    distance: int
    seq: int


class LostConnectionError(CollectionError):
    """The server went away, and nothing of what was under way was written: it can be tried again."""


def retry_once(method: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Let a method be tried once more where the server went away, perhaps to be started again."""

    @wraps(method)
    def tried(*arguments: Parameters.args, **options: Parameters.kwargs) -> Result:
        try:
            return method(*arguments, **options)
        except LostConnectionError as error:
            logger.info("trying again: %s", error)
            return method(*arguments, **options)

    return tried


class Write(Protocol):
    """What can be done within one write."""

    @property
    def state(self) -> State:
        """The collection before this write."""

    def put(self, new: Sequence[NewDocument]) -> Added:
        """Insert documents, or replace those with the same id, which keep their seq.

        Of several with one id the last counts. InputError, and nothing stored, where one cannot be stored.
        """

    def delete(self, seqs: Iterable[int]) -> None:
        """Delete documents by seq."""


class Backend(Protocol):
    """An open collection; threads may share it.

    Whatever is asked within `reading` is answered from one state, as far as the engine can; outside of it,
    each call sees the newest. Every error is a SnuhError of one sentence that calls the collection by `name`;
    after a LostConnectionError the call is tried once more.
    """

    @property
    def name(self) -> str:
        """How people call it: its address without any secret."""

    @property
    def folder(self) -> Path | None:
        """Its folder; None where it is in none."""

    def close(self) -> None:
        """Let go of it."""

    def reading(self) -> AbstractContextManager[State]:
        """See one state until the block ends; may be nested."""

    def writing(self) -> AbstractContextManager[Write]:
        """Write all that the block writes, or nothing; one writer at a time, the others wait."""

    def warm_cache(self) -> None:
        """Do what makes the next search quick, after documents have come; what fails is logged."""

    # The model

    def load_model(self, fingerprint: str) -> Model:
        """Return a model that is kept in the collection; ModelError where it is lost or damaged."""

    def rehash(self, model: Model, *, progress: Callable[[float], None] | None) -> None:
        """Encode every document with another model, and let these codes take the place of the old ones.

        Others may search and write meanwhile. A stop at any point leaves the old codes in use.
        """

    # Documents

    def count(self) -> int:
        """Return the number of documents."""

    def seq_of(self, doc_id: str) -> int | None:
        """Return the seq of an id."""

    def documents_of(self, seqs: Iterable[int]) -> dict[int, Document]:
        """Return documents by their seq."""

    def documents(
        self, *, after: int = 0, before: int | None = None, limit: int, where: Filter | None = None
    ) -> list[tuple[int, Document]]:
        """Return up to `most` documents with their seqs, in order, from between `after` and `before`."""

    def seqs_where(self, where: Filter) -> NDArray[np.int64]:
        """Return the seqs of the documents that a filter lets through, ascending."""

    def fields(self, *, limit: int) -> list[str]:
        """Return names that the documents' metadata have had, in order."""

    def has_field(self, name: str) -> bool:
        """Tell whether some document's metadata have had this name."""

    def ids_near(self, doc_id: str, *, limit: int) -> list[str]:
        """Return the ids that come before and after one in the order of ids, for a suggestion."""

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
        """Return the k nearest documents of each query (queries, bytes), ordered by (distance, seq).

        Args:
            queries: packed codes, of the length of the collection's own.
            k: most documents to return.
            radius: the largest distance to return.
            where: which documents to look at; its fields are known to the collection.
            approximate: use the approximate index, where there is one; otherwise log a warning and be exact.
        """

    def codes_of(self, seqs: Sequence[int]) -> CodeRows:
        """Return the codes that these documents have, by seq."""

    def sample_codes(self, limit: int) -> CodeRows:
        """Return up to `most` codes by seq, evenly from all over the collection (see `even_places`)."""

    def searchable(self) -> int:
        """Return the number of documents that have a code."""

    def build_index(self, *, k: int, recall: float) -> IndexInfo:
        """Build the index that `find` uses with `approximate`, and measure its recall at k."""

    def index_info(self) -> IndexInfo | None:
        """Tell of the approximate index; None where there is none for the codes in use."""

    def sizes(self) -> tuple[int, int]:
        """Return the bytes of the documents, and those of what only searches need."""


Put: TypeAlias = Callable[[Sequence[NewDocument]], object]


class BackendModule(Protocol):
    """The functions of a backend's module; an address comes as the user gave it."""

    def open_backend(self, address: str, *, timeout: float) -> Backend:
        """Open a collection; InputError where there is none, CollectionError where it cannot be used.

        Args:
            address: of the collection.
            timeout: seconds to wait for another writer.
        """

    def creating(self, address: str, model: Model) -> AbstractContextManager[Put]:
        """Make a collection, to be filled in the block: it is there once the block ends, or not at all."""

    def ensure_absent(self, address: str) -> None:
        """Raise InputError unless a collection can be made there."""

    def is_collection(self, address: str) -> bool:
        """Tell whether there is a collection, whole or damaged; what it holds is not checked."""

    def short_name(self, address: str) -> str:
        """Return what a server calls the collection unless told otherwise."""


def by_id(new: Sequence[NewDocument], *, bits: int) -> dict[str, NewDocument]:
    """Return documents to put by their ids, of several with one id the last.

    CollectionError where a code is not of so many bits.
    """
    if any(one.code is not None and 8 * len(one.code) != bits for one in new):
        raise CollectionError(f"this collection holds {bits}-bit codes, these are of another model")
    return {one.document.id: one for one in new}


def evenly_spaced(count: int, limit: int) -> NDArray[np.int64]:
    """Return up to `most` numbers below `count`, evenly apart, the first and the last among them."""
    return np.unique(np.linspace(0, count - 1, min(limit, count)).astype(np.int64))


# Which module opens the collection at an address; it is imported only then, with the client it needs.

LOCAL = "snuh.collection.local.backend"
EXTRAS = {"psycopg": "postgres", "psycopg_pool": "postgres", "pymilvus": "milvus"}  # by the module they bring


def module_of(address: Address) -> BackendModule:
    """Return the module that opens an address; MissingExtraError where its client is not installed."""
    found = SCHEME.match(address) if isinstance(address, str) else None
    if found is None:
        return cast(BackendModule, import_module(LOCAL))
    scheme = found[1].lower()
    try:
        return cast(BackendModule, import_module(MODULES[scheme]))
    except ModuleNotFoundError as error:
        if (extra := EXTRAS.get(str(error.name).partition(".")[0])) is None:
            raise
        raise MissingExtraError(f'{scheme}:// needs {error.name}: pip install "snuh[{extra}]"') from None


def ensure_absent(address: Address) -> None:
    """Raise InputError unless a collection can be made at an address."""
    module_of(address).ensure_absent(str(address))


def is_collection(address: Address) -> bool:
    """Tell whether there is a collection at an address; what it holds is not checked."""
    return module_of(address).is_collection(str(address))


def short_name(address: Address) -> str:
    """Return what a server calls the collection at an address."""
    return module_of(address).short_name(str(address))


# How much of the exact answer an approximate search gives.


class Near(Protocol):
    """A document found."""

    @property
    def distance(self) -> int:
        """How far from the query."""


def recall_of(exact: Sequence[Sequence[Near]], found: Sequence[Sequence[Near]]) -> float:
    """Return the share of the exact answers to some queries that was found; 1 where there is nothing.

    A document counts where it is no further than the last of the exact answer: which of several at that
    distance come back is of no interest.
    """
    right = sum(
        sum(one.distance <= best[-1].distance for one in some)
        for best, some in zip(exact, found, strict=True)
        if best
    )
    wanted = sum(map(len, exact))
    return right / wanted if wanted else 1.0


# The parts of a document as texts that a database can keep, and back.

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
_decode = json.JSONDecoder().raw_decode  # what was written here has nothing around it to look at


class Columns(NamedTuple):
    """A document; `labels` is a JSON list and `metadata` a JSON object."""

    id: str
    split: str | None
    labels: str
    metadata: str
    text: str


def to_columns(document: Document) -> Columns:
    """Return the columns; InputError for what is no JSON, or half a surrogate pair, which has no bytes."""
    try:
        labels, metadata = _encode(document.labels), _encode(document.metadata)
        for text in (document.id, document.text, document.split or "", labels, metadata):
            text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"the document {document.id!r} cannot be stored: {error}") from error
    return Columns(document.id, document.split, labels, metadata, document.text)


def from_columns(doc_id: str, split: str | None, labels: str, metadata: str, text: str) -> Document:
    """Return the document that columns were made of."""
    # Most documents of many collections have neither, and reading JSON takes longer than all the rest.
    named = tuple(_decode(labels)[0]) if labels != "[]" else ()
    return Document(doc_id, text, named, split, _decode(metadata)[0] if metadata != "{}" else {})


def is_storable(text: str) -> bool:
    """Tell whether a text has no half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
