"""A collection on a server, with the methods of a collection in a folder."""

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
from snuh.client.responses import DuplicateGroups, FieldFacts, Plane
from snuh.codes import check_codes
from snuh.collection import Added, redact
from snuh.collection.collection import MAX_CHARACTERS
from snuh.collection.query import SearchOptions
from snuh.collection.results import IndexInfo, Info, Sample
from snuh.collection.validation import checked_documents
from snuh.corpus import Document
from snuh.dedup import Keep, Measure
from snuh.errors import CollectionError, InputError, UnknownDocumentError
from snuh.explain import BitMeaning, Explanation
from snuh.filters import Filter
from snuh.model import Model
from snuh.search import Hit, UnknownWordsError

# Requests to a server; whatever goes wrong is raised as a collection in a folder would.

FIRST_WAIT, MAX_WAIT = 0.05, 1.0  # seconds, between two looks at what is being made
NOT_YET = (httpx.codes.ACCEPTED, httpx.codes.TOO_MANY_REQUESTS)  # the latter also while other things are made


class Connection:
    """Asks for one collection of a server."""

    def __init__(self, name: str, *, server: str, token: str | None, timeout: float) -> None:
        self._path = f"/v1/collections/{quote(name, safe='')}"
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        try:
            self._http = httpx.Client(base_url=server, headers=headers, timeout=timeout)
        except (httpx.InvalidURL, UnicodeError) as error:
            raise InputError(f"{server!r} is no address of a server: {error}") from error

    def close(self) -> None:
        """End the connection."""
        self._http.close()

    def ask(self, method: str, path: str, **how: Any) -> dict[str, Any]:  # Any: what httpx takes
        """Return the answer to a request."""
        return _answer(self._request(method, path, **how))

    def ask_until_made(self, method: str, path: str, *, patience: float, **how: Any) -> dict[str, Any]:
        """Ask until what the server makes is ready; CollectionError where that takes more than `patience`."""
        end, wait = time.monotonic() + patience, FIRST_WAIT
        while (response := self._request(method, path, **how)).status_code in NOT_YET:
            if time.monotonic() >= end:
                raise CollectionError(
                    f"it is still being made after {patience:g} seconds: wait longer, or ask again later"
                )
            time.sleep(wait)
            wait = min(1.5 * wait, MAX_WAIT)
        return _answer(response)

    @contextmanager
    def stream(self, path: str, **how: Any) -> Iterator[Iterator[bytes]]:
        """Give an answer as it comes."""
        with _reported(), self._http.stream("GET", self._path + path, **how) as response:
            if not response.is_success:
                response.read()
                raise _error(response)
            yield response.iter_bytes()

    def _request(self, method: str, path: str, **how: Any) -> httpx.Response:
        with _reported():
            return self._http.request(method, self._path + path, **how)


class _reported:
    """Says in one line what went wrong on the way."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, UnicodeEncodeError):
            raise InputError("half of a surrogate pair is no text: send whole characters") from error
        if isinstance(error, httpx.TimeoutException):
            raise CollectionError("the server did not answer in time: try again later") from error
        if isinstance(error, httpx.TransportError):
            raise CollectionError(
                f'the server cannot be reached: start it with "snuh serve" ({error})'
            ) from error


def _answer(response: httpx.Response) -> dict[str, Any]:
    if not response.is_success:
        raise _error(response)
    answer: dict[str, Any] = response.json()
    return answer


def _error(response: httpx.Response) -> Exception:
    """Return the error that a collection in a folder would have raised."""
    try:
        told = response.json()
        sentence, kind = str(told["error"]), str(told["kind"])
    except (ValueError, KeyError, TypeError):
        return CollectionError(f"the server answered with the status {response.status_code} and no reason")
    if kind == "unknown-words":
        return UnknownWordsError(sentence)
    if told.get("what") == "document":
        return UnknownDocumentError(sentence)
    is_mine = response.status_code < 500 and response.status_code not in (408, 429)
    return InputError(sentence) if is_mine else CollectionError(sentence)


DEFAULT_URL = "http://127.0.0.1:8765"
TEXTS_AT_ONCE, HITS_AT_ONCE = 100, 10_000  # what a server takes in one request
IDS_AT_ONCE = 10_000
PATIENCE = 600.0  # seconds, for what a server has to make first


class DuplicateOptions(TypedDict, total=False):
    """What `duplicates` takes, as `snuh dedup` does."""

    threshold: float
    radius: int | None
    measure: Measure
    group_by: str | None
    target: int | None
    keep: Keep


class Client:
    """Talks to a server: `Client("tickets").search("printer is on fire")`.

    It has the methods of `Collection`, with the same arguments, answers and errors, but for `create` and
    `rehash`, which are done where the collection is. An InputError is yours to mend; a CollectionError says
    that the server, or its collection, cannot answer.

    Args:
        name: of the collection.
        server: where `snuh serve` listens.
        token: where the server asks for one.
        timeout: seconds to wait for an answer.
    """

    def __init__(
        self, name: str, *, server: str = DEFAULT_URL, token: str | None = None, timeout: float = 60.0
    ) -> None:
        self.name, self.server = name, server
        self._connection = Connection(name, server=server, token=token, timeout=timeout)
        self._model: tuple[str, Model] | None = None  # with its fingerprint

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        """Count the documents."""
        return int(self._told()["documents"])

    def __contains__(self, doc_id: object) -> bool:
        """Tell whether there is a document of that id."""
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
        """Insert documents, or replace those with the same id; they are sent and stored as they come."""
        lines = (responses.line_of(document) for document in checked_documents(documents, max_characters))
        told = self._connection.ask(
            "POST", "/documents/lines", content=lines, headers={"Content-Type": "application/x-ndjson"}
        )
        return Added(told["inserted"], told["replaced"], told["without_known_words"])

    def delete(self, ids: Iterable[str]) -> int:
        """Delete documents; UnknownDocumentError, and nothing deleted, where an id is unknown."""
        if isinstance(ids, str):
            raise InputError("expected a list of ids, got a single one: put it into a list")
        wanted = list(dict.fromkeys(ids))
        if len(wanted) > IDS_AT_ONCE:
            raise InputError(f"a server deletes up to {IDS_AT_ONCE:,} documents at once, got {len(wanted):,}")
        if not wanted:
            return 0
        return int(self._post("/documents/delete", {"ids": wanted})["deleted"])

    def delete_where(self, where: str | Filter) -> int:
        """Delete the documents that a filter lets through, and return how many they were."""
        return int(self._post("/documents/delete", {"where": str(where)})["deleted"])

    def build_index(self, *, k: int = 10, recall: float = 0.99, patience: float = PATIENCE) -> IndexInfo:
        """Build the index of approximate searches; wait up to `patience` seconds for it."""
        asked = {"k": k, "recall": recall}
        return responses.read_index_info(
            self._connection.ask_until_made("POST", "/lists", json=asked, patience=patience)
        )

    # Reading

    @property
    def model(self) -> Model:
        """The model that the codes come from, sent by the server and kept until it has another one."""
        fingerprint = str(self._told()["model"]["fingerprint"])
        if self._model is None or self._model[0] != fingerprint:
            with self._connection.stream("/model") as parts:
                self._model = (fingerprint, responses.read_model(parts))
        return self._model[1]

    def version(self) -> str:
        """Return what is another text after every write, whoever wrote."""
        return str(self._told()["version"])

    def get(self, doc_id: str) -> Document:
        """Return a document; UnknownDocumentError where there is none of that id."""
        (found,) = self._get("/documents", id=doc_id)["documents"]
        return responses.read_document(found)

    def documents(self, *, where: str | Filter | None = None) -> Iterator[Document]:
        """Yield the documents in order of insertion; those that come meanwhile are left out."""
        params = {} if where is None else {"where": str(where)}
        with self._connection.stream("/documents/lines", params=params) as parts:
            yield from map(responses.read_line, responses.lines_of(parts))

    def sample(self, limit: int) -> Sample:
        """Return up to `most` documents that have a code, from all over the collection, and their codes."""
        return responses.read_sample(self._get("/sample", limit=limit))

    def search(self, text: str, **options: Unpack[SearchOptions]) -> list[Hit]:
        """Find the documents nearest to a text, as `Collection.search` does."""
        return self._hits("/search", {"text": text}, options)

    def search_many(self, texts: Sequence[str], **options: Unpack[SearchOptions]) -> list[list[Hit] | None]:
        """Search for many texts; None for one of which the model knows no word."""
        return self._search_batches("texts", list(texts), options)

    def search_codes(self, codes: NDArray[np.uint8], **options: Unpack[SearchOptions]) -> list[list[Hit]]:
        """Find the documents nearest to each code (queries, bytes) made by the collection's model."""
        digits = [code.tobytes().hex() for code in check_codes(codes)]
        return [hits or [] for hits in self._search_batches("codes", digits, options)]

    def similar(self, doc_id: str, **options: Unpack[SearchOptions]) -> list[Hit]:
        """Find the documents nearest to one of the collection, itself left out."""
        return self._hits("/similar", {"id": doc_id}, options)

    def explain(self, text: str, doc_id: str) -> Explanation:
        """Say which words of a query and of a document made their bits agree or differ."""
        return responses.read_explanation(self._post("/explain", {"text": text, "id": doc_id}))

    def info(self) -> Info:
        """Describe the collection; its address is that of the server, and its name."""
        return responses.read_info(self._told(), name=redact(f"{self.server}/{self.name}"))

    # What a collection in a folder leaves to other functions

    def encode(self, texts: Sequence[str]) -> list[str | None]:
        """Return the code of each text as hexadecimal digits; None where the model knows no word of it."""
        codes: list[str | None] = []
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            codes += self._post("/encode", {"texts": list(texts[start : start + TEXTS_AT_ONCE])})["codes"]
        return codes

    def bits(self, *, words: int = 10) -> list[BitMeaning]:
        """Tell what each bit stands for, as `snuh.explain.bit_meanings` does."""
        return [responses.read_meaning(told) for told in self._get("/bits", words=words)["meanings"]]

    def fields(self) -> list[FieldFacts]:
        """Tell what can be filtered by, from a sample of the documents."""
        return [responses.read_field(told) for told in self._get("/fields")["fields"]]

    def duplicates(
        self, *, patience: float = PATIENCE, **options: Unpack[DuplicateOptions]
    ) -> DuplicateGroups:
        """Find documents that repeat another one, and wait up to `patience` seconds for that."""
        given = {name: value for name, value in options.items() if value is not None}
        return responses.read_duplicates(
            self._connection.ask_until_made("GET", "/duplicates", params=given, patience=patience)
        )

    def map(self, *, patience: float = PATIENCE) -> Plane:
        """Place documents in the plane, and wait up to `patience` seconds for that."""
        return responses.read_plane(self._connection.ask_until_made("GET", "/map", patience=patience))

    # Within

    def _told(self) -> dict[str, Any]:
        return self._get("")

    def _get(self, path: str, **params: str | int) -> dict[str, Any]:
        return self._connection.ask("GET", path, params=params)

    def _post(self, path: str, asked: dict[str, Any]) -> dict[str, Any]:
        return self._connection.ask("POST", path, json=asked)

    def _hits(self, path: str, asked: dict[str, Any], options: SearchOptions) -> list[Hit]:
        asked = {**asked, "characters": None, **responses.options_to_json(options)}
        return [responses.read_hit(found) for found in self._post(path, asked)["hits"]]

    def _search_batches(
        self, kind: str, queries: list[str], options: SearchOptions
    ) -> list[list[Hit] | None]:
        k = options.get("k", 10)
        at_once = min(TEXTS_AT_ONCE, HITS_AT_ONCE // k) if 0 < k <= HITS_AT_ONCE else 1  # else it is refused
        found: list[list[Hit] | None] = []
        for start in range(0, len(queries), at_once):
            part = {kind: queries[start : start + at_once], "characters": None}
            for one in self._post("/search/batch", part | responses.options_to_json(options))["answers"]:
                found.append(
                    None if one["hits"] is None else [responses.read_hit(hit) for hit in one["hits"]]
                )
        return found
