"""A collection on a server, with the methods of `snuh.Collection`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from snuh.client import calls, responses
from snuh.client.calls import DuplicateOptions
from snuh.client.responses import DuplicateGroups, Facet, Projection
from snuh.client.session import DEFAULT_URL, Connection, Session
from snuh.collection import Added, redact
from snuh.collection.collection import MAX_CHARACTERS
from snuh.collection.query import SearchOptions
from snuh.collection.results import IndexInfo, Info, Page, Sample
from snuh.corpus import Document
from snuh.corpus.rows import checked_documents
from snuh.errors import UnknownDocumentError
from snuh.explain import BitMeaning, Explanation
from snuh.filters import Filter
from snuh.model import Model
from snuh.search import Hits

DEFAULT_WAIT_SECONDS = 600.0


class Client:
    """A collection on a server: `Client("tickets").search("printer is on fire")`.

    It has the methods of `Collection`, with the same arguments, results and errors, except `create` and
    `rehash`, which run where the collection is stored. InputError means that the request is invalid,
    CollectionError that the server or its collection is unavailable.

    A request that finds the server unreachable or overloaded is repeated, after a pause that doubles each
    time. A write whose response was lost is not: the server may have done it.

    Args:
        name: name of the collection.
        server: URL of `snuh serve`.
        token: access token, if the server requires one.
        timeout: seconds to wait for a response.
        retries: times that a request is repeated.
    """

    def __init__(
        self,
        name: str,
        *,
        server: str = DEFAULT_URL,
        token: str | None = None,
        timeout: float = 60.0,
        retries: int = 3,
    ) -> None:
        self.name, self.server = name, server
        self._session = Session(Connection(name, server, token, timeout, retries))
        self._model: tuple[str, Model] | None = None  # with its fingerprint

    def close(self) -> None:
        """Close the connection."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        """Return the number of documents."""
        return int(self._session.send(calls.info())["documents"])

    def count(self, *, where: str | Filter | None = None) -> int:
        """Count the documents that match a filter; all by default."""
        return self._session.send(calls.count(where))

    def __contains__(self, doc_id: object) -> bool:
        """Return whether a document with this id exists."""
        if not isinstance(doc_id, str):
            return False
        try:
            self.get(doc_id)
        except UnknownDocumentError:
            return False
        return True

    # Writing

    def add(self, documents: Iterable[Any], *, max_characters: int = MAX_CHARACTERS) -> Added:
        """Insert documents, or replace those with the same id; they are streamed to the server."""
        lines = (responses.document_line(item) for item in checked_documents(documents, max_characters))
        return calls.parse_added(self._session.upload("/documents/lines", lines, headers=calls.NDJSON))

    def update(self, doc_id: str, changes: Mapping[str, Any]) -> Document:
        """Change fields of a document, and return it; None removes a field."""
        return self._session.send(calls.update(doc_id, changes))

    def delete(self, ids: Iterable[str]) -> int:
        """Delete documents by id; if one does not exist, raise UnknownDocumentError and delete none."""
        call = calls.delete(ids)
        return 0 if call is None else self._session.send(call)

    def delete_where(self, where: str | Filter) -> int:
        """Delete the documents that match a filter, and return their number."""
        return self._session.send(calls.delete_where(where))

    def build_index(
        self, *, k: int = 10, recall: float = 0.99, wait_seconds: float = DEFAULT_WAIT_SECONDS
    ) -> IndexInfo:
        """Build the index of approximate searches; wait up to `wait_seconds` for it."""
        return self._session.wait_for(calls.build_index(k, recall), seconds=wait_seconds)

    # Reading

    @property
    def model(self) -> Model:
        """The model of the collection, downloaded again only when the server has another one."""
        fingerprint = str(self._session.send(calls.info())["model"]["fingerprint"])
        if self._model is None or self._model[0] != fingerprint:
            with self._session.stream("/model") as chunks:
                self._model = (fingerprint, responses.parse_model(chunks))
        return self._model[1]

    def version(self) -> str:
        """Return the version token, which changes with every write."""
        return str(self._session.send(calls.info())["version"])

    def get(self, doc_id: str) -> Document:
        """Return a document; UnknownDocumentError if it does not exist."""
        return self._session.send(calls.get(doc_id))

    def page(self, *, after: str | None = None, limit: int = 100, where: str | Filter | None = None) -> Page:
        """Return up to `limit` documents, at most 100, in insertion order; `after` is the last `next`."""
        return self._session.send(calls.page(after, limit, where))

    def documents(self, *, where: str | Filter | None = None) -> Iterator[Document]:
        """Yield the documents in insertion order; those added in the meantime are not included."""
        params = {} if where is None else {"where": str(where)}
        with self._session.stream("/documents/lines", **params) as chunks:
            yield from map(responses.parse_line, responses.split_lines(chunks))

    def sample(self, limit: int, *, characters: int | None = None) -> Sample:
        """Return up to `limit` documents that have a code, spread over the collection, with their codes."""
        return self._session.send(calls.sample(limit, characters))

    def search(self, text: str, *, vector: Any = None, **options: Unpack[SearchOptions]) -> Hits:
        """Search for a text, as `Collection.search` does."""
        return self._session.send(calls.search(text, options, vector=vector))

    def search_many(
        self, texts: Sequence[str], *, vectors: Sequence[Any] | None = None, **options: Unpack[SearchOptions]
    ) -> list[Hits]:
        """Search for many texts at once."""
        requests = calls.search_many(texts, options, vectors=vectors)
        return [hits for call in requests for hits in self._session.send(call)]

    def search_codes(self, codes: NDArray[np.uint8], **options: Unpack[SearchOptions]) -> list[Hits]:
        """Search for codes (queries, bytes) of the collection's model."""
        return [hits for call in calls.search_codes(codes, options) for hits in self._session.send(call)]

    def similar(self, doc_id: str, **options: Unpack[SearchOptions]) -> Hits:
        """Search for documents similar to one of the collection, which is not among the hits."""
        return self._session.send(calls.similar(doc_id, options))

    def explain(self, text: str, doc_id: str) -> Explanation:
        """Return the words of a query and of a document that made their bits agree or differ."""
        return self._session.send(calls.explain(text, doc_id))

    def info(self) -> Info:
        """Describe the collection; its address is the server's URL followed by its name."""
        name = redact(f"{self.server}/{self.name}")
        about = self._session.send(calls.info())
        return responses.parse_info(about, name=name)

    # What other functions do with a local collection

    def encode(self, texts: Sequence[str]) -> list[str | None]:
        """Return the code of each text in hexadecimal; None if the model knows no word of it."""
        return [code for call in calls.encode(texts) for code in self._session.send(call)]

    def bits(self, *, words: int = 10) -> list[BitMeaning]:
        """Return the words that each bit stands for, as `snuh.explain.bit_meanings` does."""
        return self._session.send(calls.bits(words))

    def facets(self) -> list[Facet]:
        """Return the fields to filter by."""
        return self._session.send(calls.facets())

    def duplicates(
        self, *, wait_seconds: float = DEFAULT_WAIT_SECONDS, **options: Unpack[DuplicateOptions]
    ) -> DuplicateGroups:
        """Find duplicate documents; wait up to `wait_seconds` for the result."""
        return self._session.wait_for(calls.duplicates(options), seconds=wait_seconds)

    def map(self, *, wait_seconds: float = DEFAULT_WAIT_SECONDS) -> Projection:
        """Return a two-dimensional map of the documents; wait up to `wait_seconds` for it."""
        return self._session.wait_for(calls.projection(), seconds=wait_seconds)
