"""A collection on a server, with the methods of `snuh.Collection`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self, TypedDict, Unpack
from urllib.parse import quote

import httpx
import numpy as np
from numpy.typing import NDArray

from snuh.client import responses
from snuh.client.responses import DuplicateGroups, Facet, Projection
from snuh.codes import check_codes
from snuh.collection import Added, redact
from snuh.collection.collection import MAX_CHARACTERS
from snuh.collection.query import SearchOptions
from snuh.collection.results import IndexInfo, Info, Sample
from snuh.corpus import Document
from snuh.corpus.document import checked_documents, excerpt
from snuh.dedup import Keep, Measure
from snuh.errors import CollectionError, InputError, UnknownDocumentError
from snuh.explain import BitMeaning, Explanation
from snuh.filters import Filter
from snuh.model import Model
from snuh.search import Hit, UnknownWordsError

DEFAULT_URL = "http://127.0.0.1:8765"
DEFAULT_WAIT_SECONDS = 600.0
MAX_TEXTS, MAX_HITS, MAX_IDS = 100, 10_000, 10_000  # per request
FIRST_PAUSE, MAX_PAUSE = 0.05, 1.0  # seconds between two requests for the result of a job
NOT_READY = (httpx.codes.ACCEPTED, httpx.codes.TOO_MANY_REQUESTS)  # 429: other jobs are running


class DuplicateOptions(TypedDict, total=False):
    """The options of `Client.duplicates`, which are those of `snuh dedup`."""

    threshold: float
    radius: int | None
    measure: Measure
    group_by: str | None
    target: int | None
    keep: Keep


class Client:
    """A collection on a server: `Client("tickets").search("printer is on fire")`.

    It has the methods of `Collection`, with the same arguments, results and errors, except `create` and
    `rehash`, which run where the collection is stored. InputError means that the request is invalid,
    CollectionError that the server or its collection is unavailable.

    Args:
        name: name of the collection.
        server: URL of `snuh serve`.
        token: access token, if the server requires one.
        timeout: seconds to wait for a response.
    """

    def __init__(
        self, name: str, *, server: str = DEFAULT_URL, token: str | None = None, timeout: float = 60.0
    ) -> None:
        self.name, self.server = name, server
        self._session = HttpSession(name, server=server, token=token, timeout=timeout)
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
        return int(self._info()["documents"])

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

    def add(
        self, documents: Iterable[Document | Mapping[str, Any]], *, max_characters: int = MAX_CHARACTERS
    ) -> Added:
        """Insert documents, or replace those with the same id; they are streamed to the server."""
        lines = (responses.document_line(item) for item in checked_documents(documents, max_characters))
        result = self._session.request(
            "POST", "/documents/lines", content=lines, headers={"Content-Type": "application/x-ndjson"}
        )
        return Added(result["inserted"], result["replaced"], result["without_known_words"])

    def delete(self, ids: Iterable[str]) -> int:
        """Delete documents by id; if one does not exist, raise UnknownDocumentError and delete none."""
        if isinstance(ids, str):
            raise InputError("expected a list of ids, got a single one: put it into a list")
        unique = list(dict.fromkeys(ids))
        if len(unique) > MAX_IDS:
            raise InputError(f"a server deletes up to {MAX_IDS:,} documents at once, got {len(unique):,}")
        if not unique:
            return 0
        return int(self._post("/documents/delete", {"ids": unique})["deleted"])

    def delete_where(self, where: str | Filter) -> int:
        """Delete the documents that match a filter, and return their number."""
        return int(self._post("/documents/delete", {"where": str(where)})["deleted"])

    def build_index(
        self, *, k: int = 10, recall: float = 0.99, wait_seconds: float = DEFAULT_WAIT_SECONDS
    ) -> IndexInfo:
        """Build the index of approximate searches; wait up to `wait_seconds` for it."""
        body = {"k": k, "recall": recall}
        result = self._session.wait_for("POST", "/index", json=body, wait_seconds=wait_seconds)
        return responses.parse_index_info(result)

    # Reading

    @property
    def model(self) -> Model:
        """The model of the collection, downloaded again only when the server has another one."""
        fingerprint = str(self._info()["model"]["fingerprint"])
        if self._model is None or self._model[0] != fingerprint:
            with self._session.stream("/model") as chunks:
                self._model = (fingerprint, responses.parse_model(chunks))
        return self._model[1]

    def version(self) -> str:
        """Return the version token, which changes with every write."""
        return str(self._info()["version"])

    def get(self, doc_id: str) -> Document:
        """Return a document; UnknownDocumentError if it does not exist."""
        (document,) = self._get("/documents", id=doc_id)["documents"]
        return responses.parse_document(document)

    def documents(self, *, where: str | Filter | None = None) -> Iterator[Document]:
        """Yield the documents in insertion order; those added in the meantime are not included."""
        params = {} if where is None else {"where": str(where)}
        with self._session.stream("/documents/lines", params=params) as chunks:
            yield from map(responses.parse_line, responses.split_lines(chunks))

    def sample(self, limit: int, *, characters: int | None = None) -> Sample:
        """Return up to `limit` documents that have a code, spread over the collection, with their codes."""
        sample = responses.parse_sample(self._get("/sample", limit=limit))
        return Sample([excerpt(document, characters) for document in sample.documents], sample.codes)

    def search(self, text: str, **options: Unpack[SearchOptions]) -> list[Hit]:
        """Search for a text, as `Collection.search` does."""
        return self._search("/search", {"text": text}, options)

    def search_many(self, texts: Sequence[str], **options: Unpack[SearchOptions]) -> list[list[Hit] | None]:
        """Search for many texts; None for a text without any word that the model knows."""
        return self._search_batch("texts", list(texts), options)

    def search_codes(self, codes: NDArray[np.uint8], **options: Unpack[SearchOptions]) -> list[list[Hit]]:
        """Search for codes (queries, bytes) of the collection's model."""
        digits = [code.tobytes().hex() for code in check_codes(codes)]
        return [hits or [] for hits in self._search_batch("codes", digits, options)]

    def similar(self, doc_id: str, **options: Unpack[SearchOptions]) -> list[Hit]:
        """Search for documents similar to one of the collection, which is not among the hits."""
        return self._search("/similar", {"id": doc_id}, options)

    def explain(self, text: str, doc_id: str) -> Explanation:
        """Return the words of a query and of a document that made their bits agree or differ."""
        return responses.parse_explanation(self._post("/explain", {"text": text, "id": doc_id}))

    def info(self) -> Info:
        """Describe the collection; its address is the server's URL followed by its name."""
        return responses.parse_info(self._info(), name=redact(f"{self.server}/{self.name}"))

    # What other functions do with a local collection

    def encode(self, texts: Sequence[str]) -> list[str | None]:
        """Return the code of each text in hexadecimal; None if the model knows no word of it."""
        codes: list[str | None] = []
        for start in range(0, len(texts), MAX_TEXTS):
            codes += self._post("/encode", {"texts": list(texts[start : start + MAX_TEXTS])})["codes"]
        return codes

    def bits(self, *, words: int = 10) -> list[BitMeaning]:
        """Return the words that each bit stands for, as `snuh.explain.bit_meanings` does."""
        return [responses.parse_meaning(meaning) for meaning in self._get("/bits", words=words)["meanings"]]

    def facets(self) -> list[Facet]:
        """Return the fields to filter by, from a sample of the documents."""
        return [responses.parse_facet(facet) for facet in self._get("/facets")["facets"]]

    def duplicates(
        self, *, wait_seconds: float = DEFAULT_WAIT_SECONDS, **options: Unpack[DuplicateOptions]
    ) -> DuplicateGroups:
        """Find duplicate documents; wait up to `wait_seconds` for the result."""
        params = {name: value for name, value in options.items() if value is not None}
        result = self._session.wait_for("GET", "/duplicates", params=params, wait_seconds=wait_seconds)
        return responses.parse_duplicates(result)

    def map(self, *, wait_seconds: float = DEFAULT_WAIT_SECONDS) -> Projection:
        """Return a two-dimensional map of the documents; wait up to `wait_seconds` for it."""
        result = self._session.wait_for("GET", "/map", wait_seconds=wait_seconds)
        return responses.parse_projection(result)

    def _info(self) -> dict[str, Any]:
        return self._get("")

    def _get(self, path: str, **params: str | int) -> dict[str, Any]:
        return self._session.request("GET", path, params=params)

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return self._session.request("POST", path, json=body)

    def _search(self, path: str, query: dict[str, Any], options: SearchOptions) -> list[Hit]:
        body = {**query, "characters": None, **responses.options_to_json(options)}
        return [responses.parse_hit(hit) for hit in self._post(path, body)["hits"]]

    def _search_batch(self, kind: str, queries: list[str], options: SearchOptions) -> list[list[Hit] | None]:
        k = options.get("k", 10)
        size = min(MAX_TEXTS, MAX_HITS // k) if 0 < k <= MAX_HITS else 1  # else the server rejects k
        hit_lists: list[list[Hit] | None] = []
        for start in range(0, len(queries), size):
            batch = {kind: queries[start : start + size], "characters": None}
            body = batch | responses.options_to_json(options)
            for result in self._post("/search/batch", body)["results"]:
                hits = result["hits"]
                hit_lists.append(None if hits is None else [responses.parse_hit(hit) for hit in hits])
        return hit_lists


class HttpSession:
    """HTTP requests about one collection; errors are raised as `Collection` raises them."""

    def __init__(self, name: str, *, server: str, token: str | None, timeout: float) -> None:
        self._path = f"/v1/collections/{quote(name, safe='')}"
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        try:
            self._http = httpx.Client(base_url=server, headers=headers, timeout=timeout)
        except (httpx.InvalidURL, UnicodeError) as error:
            raise InputError(f"{server!r} is not a valid URL of a server: {error}") from error

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def request(self, method: str, path: str, **arguments: Any) -> dict[str, Any]:  # Any: as httpx takes them
        """Return the JSON of a response."""
        return _parse_json(self._send(method, path, **arguments))

    def wait_for(self, method: str, path: str, *, wait_seconds: float, **arguments: Any) -> dict[str, Any]:
        """Repeat a request until its job is done; CollectionError after `wait_seconds`."""
        deadline, pause = time.monotonic() + wait_seconds, FIRST_PAUSE
        while (response := self._send(method, path, **arguments)).status_code in NOT_READY:
            if time.monotonic() >= deadline:
                raise CollectionError(
                    f"the job is still running after {wait_seconds:g} seconds: try again later"
                )
            time.sleep(pause)
            pause = min(1.5 * pause, MAX_PAUSE)
        return _parse_json(response)

    @contextmanager
    def stream(self, path: str, **arguments: Any) -> Iterator[Iterator[bytes]]:
        """Yield the chunks of a response as they arrive."""
        with _translated_errors(), self._http.stream("GET", self._path + path, **arguments) as response:
            if not response.is_success:
                response.read()
                raise _to_error(response)
            yield response.iter_bytes()

    def _send(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        with _translated_errors():
            return self._http.request(method, self._path + path, **arguments)


@contextmanager
def _translated_errors() -> Iterator[None]:
    """Raise errors of the transport as errors of the library."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise InputError("the text contains an unpaired surrogate: send complete characters") from error
    except httpx.TimeoutException as error:
        raise CollectionError("the server did not respond in time: try again later") from error
    except httpx.TransportError as error:
        raise CollectionError(f'cannot reach the server: start it with "snuh serve" ({error})') from error


def _parse_json(response: httpx.Response) -> dict[str, Any]:
    if not response.is_success:
        raise _to_error(response)
    content: dict[str, Any] = response.json()
    return content


def _to_error(response: httpx.Response) -> Exception:
    """Return the error that a local collection would have raised."""
    try:
        content = response.json()
        message, kind = str(content["error"]), str(content["kind"])
    except (ValueError, KeyError, TypeError):
        return CollectionError(f"the server responded with status {response.status_code} and no reason")
    if kind == "unknown-words":
        return UnknownWordsError(message)
    if content.get("resource") == "document":
        return UnknownDocumentError(message)
    is_client_error = response.status_code < 500 and response.status_code not in (408, 429)
    return InputError(message) if is_client_error else CollectionError(message)
