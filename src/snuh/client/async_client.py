"""The client for asyncio."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from snuh.client import calls, responses
from snuh.client.calls import DuplicateOptions
from snuh.client.client import DEFAULT_WAIT_SECONDS
from snuh.client.responses import DuplicateGroups, Facet, Projection
from snuh.client.session import DEFAULT_URL, AsyncSession, Connection
from snuh.collection import Added, redact
from snuh.collection.collection import MAX_CHARACTERS
from snuh.collection.query import SearchOptions
from snuh.collection.results import IndexInfo, Info, Page, Sample
from snuh.corpus import Document
from snuh.corpus.rows import checked_documents
from snuh.explain import BitMeaning, Explanation
from snuh.filters import Filter
from snuh.model import Model
from snuh.search import Hits


class AsyncClient:
    """`Client` for asyncio: `await AsyncClient("tickets").search("printer is on fire")`.

    Its methods have the same names, arguments, results and errors; `model` is a method, and `count` replaces
    `len`. Several searches may run at once.
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
        self._session = AsyncSession(Connection(name, server, token, timeout, retries))

    async def close(self) -> None:
        """Close the connection."""
        await self._session.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def count(self, *, where: str | Filter | None = None) -> int:
        """Count the documents that match a filter; all by default."""
        return await self._session.send(calls.count(where))

    # Writing

    async def add(self, documents: Iterable[Any], *, max_characters: int = MAX_CHARACTERS) -> Added:
        """Insert documents, or replace those with the same id; they are streamed to the server."""

        async def lines() -> AsyncIterator[bytes]:
            for item in checked_documents(documents, max_characters):
                yield responses.document_line(item)

        result = await self._session.upload("/documents/lines", lines(), headers=calls.NDJSON)
        return calls.parse_added(result)

    async def update(self, doc_id: str, changes: Mapping[str, Any]) -> Document:
        """Change fields of a document, and return it; None removes a field."""
        return await self._session.send(calls.update(doc_id, changes))

    async def delete(self, ids: Iterable[str]) -> int:
        """Delete documents by id; if one does not exist, raise UnknownDocumentError and delete none."""
        call = calls.delete(ids)
        return 0 if call is None else await self._session.send(call)

    async def delete_where(self, where: str | Filter) -> int:
        """Delete the documents that match a filter, and return their number."""
        return await self._session.send(calls.delete_where(where))

    async def build_index(
        self, *, k: int = 10, recall: float = 0.99, wait_seconds: float = DEFAULT_WAIT_SECONDS
    ) -> IndexInfo:
        """Build the index of approximate searches; wait up to `wait_seconds` for it."""
        return await self._session.wait_for(calls.build_index(k, recall), seconds=wait_seconds)

    # Reading

    async def model(self) -> Model:
        """Download the model of the collection."""
        async with self._session.stream("/model") as chunks:
            return responses.parse_model([chunk async for chunk in chunks])

    async def version(self) -> str:
        """Return the version token, which changes with every write."""
        return str((await self._session.send(calls.info()))["version"])

    async def get(self, doc_id: str) -> Document:
        """Return a document; UnknownDocumentError if it does not exist."""
        return await self._session.send(calls.get(doc_id))

    async def page(
        self, *, after: str | None = None, limit: int = 100, where: str | Filter | None = None
    ) -> Page:
        """Return up to `limit` documents, at most 100, in insertion order; `after` is the last `next`."""
        return await self._session.send(calls.page(after, limit, where))

    async def documents(self, *, where: str | Filter | None = None) -> AsyncIterator[Document]:
        """Yield the documents in insertion order; those added in the meantime are not included."""
        params = {} if where is None else {"where": str(where)}
        async with self._session.stream("/documents/lines", **params) as chunks:
            buffer = responses.LineBuffer()
            async for chunk in chunks:
                for line in buffer.push(chunk):
                    yield responses.parse_line(line)
            for line in buffer.rest():
                yield responses.parse_line(line)

    async def sample(self, limit: int, *, characters: int | None = None) -> Sample:
        """Return up to `limit` documents that have a code, spread over the collection, with their codes."""
        return await self._session.send(calls.sample(limit, characters))

    async def search(self, text: str, *, vector: Any = None, **options: Unpack[SearchOptions]) -> Hits:
        """Search for a text, as `Collection.search` does."""
        return await self._session.send(calls.search(text, options, vector=vector))

    async def search_many(
        self, texts: Sequence[str], *, vectors: Sequence[Any] | None = None, **options: Unpack[SearchOptions]
    ) -> list[Hits]:
        """Search for many texts at once."""
        requests = calls.search_many(texts, options, vectors=vectors)
        return [hits for call in requests for hits in await self._session.send(call)]

    async def search_codes(self, codes: NDArray[np.uint8], **options: Unpack[SearchOptions]) -> list[Hits]:
        """Search for codes (queries, bytes) of the collection's model."""
        return [
            hits for call in calls.search_codes(codes, options) for hits in await self._session.send(call)
        ]

    async def similar(self, doc_id: str, **options: Unpack[SearchOptions]) -> Hits:
        """Search for documents similar to one of the collection, which is not among the hits."""
        return await self._session.send(calls.similar(doc_id, options))

    async def explain(self, text: str, doc_id: str) -> Explanation:
        """Return the words of a query and of a document that made their bits agree or differ."""
        return await self._session.send(calls.explain(text, doc_id))

    async def info(self) -> Info:
        """Describe the collection; its address is the server's URL followed by its name."""
        name = redact(f"{self.server}/{self.name}")
        about = await self._session.send(calls.info())
        return responses.parse_info(about, name=name)

    # What other functions do with a local collection

    async def encode(self, texts: Sequence[str]) -> list[str | None]:
        """Return the code of each text in hexadecimal; None if the model knows no word of it."""
        return [code for call in calls.encode(texts) for code in await self._session.send(call)]

    async def bits(self, *, words: int = 10) -> list[BitMeaning]:
        """Return the words that each bit stands for, as `snuh.explain.bit_meanings` does."""
        return await self._session.send(calls.bits(words))

    async def facets(self) -> list[Facet]:
        """Return the fields to filter by."""
        return await self._session.send(calls.facets())

    async def duplicates(
        self, *, wait_seconds: float = DEFAULT_WAIT_SECONDS, **options: Unpack[DuplicateOptions]
    ) -> DuplicateGroups:
        """Find duplicate documents; wait up to `wait_seconds` for the result."""
        return await self._session.wait_for(calls.duplicates(options), seconds=wait_seconds)

    async def map(self, *, wait_seconds: float = DEFAULT_WAIT_SECONDS) -> Projection:
        """Return a two-dimensional map of the documents; wait up to `wait_seconds` for it."""
        return await self._session.wait_for(calls.projection(), seconds=wait_seconds)
