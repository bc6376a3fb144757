"""A collection on a server, with the methods of a collection in a folder."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self, Unpack
from urllib.parse import quote

import httpx
import numpy as np
from numpy.typing import NDArray

from snuh.codes import check_codes
from snuh.collection import Added
from snuh.collection.incoming import checked_documents
from snuh.collection.searching import SearchOptions
from snuh.corpus import Document
from snuh.errors import CollectionError, InputError, UnknownDocumentError
from snuh.explain import BitPair, Explanation, WordShare
from snuh.filters import Filter
from snuh.search import Hit, UnknownWordsError

USUAL_PLACE = "http://127.0.0.1:8765"
MAX_CHARACTERS = 10_000_000
TEXTS_AT_ONCE, HITS_AT_ONCE = 100, 10_000  # what a server takes in one request
IDS_AT_ONCE = 10_000


class Client:
    """Talks to a server: `Client("tickets").search("printer is on fire")`.

    It has the methods of `Collection` that a server offers, with the same arguments, answers and errors. An
    InputError is yours to mend; a CollectionError says that the server, or its collection, cannot answer.

    Args:
        name: of the collection.
        server: where `snuh serve` listens.
        token: where the server asks for one.
        timeout: seconds to wait for an answer.
    """

    def __init__(
        self, name: str, *, server: str = USUAL_PLACE, token: str | None = None, timeout: float = 60.0
    ) -> None:
        self.name = name
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._path = f"/v1/collections/{quote(name, safe='')}"
        try:
            self._http = httpx.Client(base_url=server, headers=headers, timeout=timeout)
        except (httpx.InvalidURL, UnicodeError) as error:
            raise InputError(f"{server!r} is no address of a server: {error}") from error

    def close(self) -> None:
        """End the connection."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        """Count the documents."""
        return int(self.info()["documents"])

    def __contains__(self, identity: object) -> bool:
        """Tell whether there is a document of that id."""
        if not isinstance(identity, str):
            return False
        try:
            self.get(identity)
        except UnknownDocumentError:
            return False
        return True

    # Writing

    def add(
        self, documents: Iterable[Document | Mapping[str, Any]], *, max_characters: int = MAX_CHARACTERS
    ) -> Added:
        """Insert documents, or replace those with the same id; they are sent and stored as they come."""
        lines = (_line(document) for document in checked_documents(documents, max_characters))
        told = self._ask(
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
        return int(self._ask("POST", "/documents/delete", json={"ids": wanted})["deleted"])

    def delete_where(self, where: str | Filter) -> int:
        """Delete the documents that a filter lets through, and return how many they were."""
        return int(self._ask("POST", "/documents/delete", json={"where": str(where)})["deleted"])

    # Reading

    def get(self, identity: str) -> Document:
        """Return a document; UnknownDocumentError where there is none of that id."""
        (found,) = self._ask("GET", "/documents", params={"id": identity})["documents"]
        return _document(found)

    def documents(self, *, where: str | Filter | None = None) -> Iterator[Document]:
        """Yield the documents in order of insertion; those that come meanwhile are left out."""
        params = {} if where is None else {"where": str(where)}
        with (
            _reported(),
            self._http.stream("GET", f"{self._path}/documents/lines", params=params) as response,
        ):
            if response.status_code != 200:
                response.read()
                raise _error(response)
            for line in _lines(response.iter_bytes()):
                fields = json.loads(line)
                own = {name: fields.pop(name) for name in ("id", "text", "labels", "split")}
                yield _document(own | {"metadata": fields})

    def search(self, text: str, **options: Unpack[SearchOptions]) -> list[Hit]:
        """Find the documents nearest to a text, as `Collection.search` does."""
        asked = {"text": text, "characters": None, **_options(options)}
        return [_hit(found) for found in self._ask("POST", "/search", json=asked)["hits"]]

    def search_many(self, texts: Sequence[str], **options: Unpack[SearchOptions]) -> list[list[Hit] | None]:
        """Search for many texts; None for one of which the model knows no word."""
        return self._search_batches("texts", list(texts), options)

    def search_codes(self, codes: NDArray[np.uint8], **options: Unpack[SearchOptions]) -> list[list[Hit]]:
        """Find the documents nearest to each code (queries, bytes) made by the collection's model."""
        digits = [code.tobytes().hex() for code in check_codes(codes)]
        return [hits or [] for hits in self._search_batches("codes", digits, options)]

    def similar(self, identity: str, **options: Unpack[SearchOptions]) -> list[Hit]:
        """Find the documents nearest to one of the collection, itself left out."""
        asked = {"id": identity, "characters": None, **_options(options)}
        return [_hit(found) for found in self._ask("POST", "/similar", json=asked)["hits"]]

    def explain(self, text: str, identity: str) -> Explanation:
        """Say which words of a query and of a document made their bits agree or differ."""
        told = self._ask("POST", "/explain", json={"text": text, "id": identity})
        return Explanation(
            distance=told["distance"],
            bits=tuple(_bit(bit) for bit in told["bits"]),
            query_words=_shares(told["query_words"]),
            hit_words=_shares(told["hit_words"]),
        )

    def encode(self, texts: Sequence[str]) -> list[str | None]:
        """Return the code of each text as hexadecimal digits; None where the model knows no word of it."""
        codes: list[str | None] = []
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            part = list(texts[start : start + TEXTS_AT_ONCE])
            codes += self._ask("POST", "/encode", json={"texts": part})["codes"]
        return codes

    def info(self) -> dict[str, Any]:
        """Describe the collection, in the words of `snuh info --json`."""
        return self._ask("GET", "")

    # Within

    def _search_batches(
        self, kind: str, queries: list[str], options: SearchOptions
    ) -> list[list[Hit] | None]:
        k = options.get("k", 10)
        at_once = min(TEXTS_AT_ONCE, HITS_AT_ONCE // k) if 0 < k <= HITS_AT_ONCE else 1  # else it is refused
        found: list[list[Hit] | None] = []
        for start in range(0, len(queries), at_once):
            asked = {kind: queries[start : start + at_once], "characters": None, **_options(options)}
            for one in self._ask("POST", "/search/batch", json=asked)["answers"]:
                found.append(None if one["hits"] is None else [_hit(hit) for hit in one["hits"]])
        return found

    def _ask(self, method: str, path: str, **how: Any) -> dict[str, Any]:  # Any: what httpx takes
        with _reported():
            response = self._http.request(method, self._path + path, **how)
        if response.status_code != 200:
            raise _error(response)
        answer: dict[str, Any] = response.json()
        return answer


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


def _lines(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield whole lines; to httpx a line also ends at characters that may stand in a text."""
    rest = b""
    for part in parts:
        *whole, rest = (rest + part).split(b"\n")
        yield from whole
    if rest:
        yield rest


def _options(options: SearchOptions) -> dict[str, Any]:
    where = options.get("where")
    return {**options, "where": None if where is None else str(where)}


def _line(document: Document) -> bytes:
    fields = {"id": document.id, "text": document.text, "labels": list(document.labels)}
    split = {} if document.split is None else {"split": document.split}
    if taken := sorted({*fields, "split"} & document.metadata.keys()):
        raise InputError(f"the document {document.id!r} has metadata called {taken[0]!r}: rename it")
    return json.dumps({**fields, **split, **document.metadata}).encode() + b"\n"


def _document(fields: Mapping[str, Any]) -> Document:
    return Document(
        fields["id"], fields["text"], tuple(fields["labels"]), fields["split"], fields["metadata"]
    )


def _hit(fields: Mapping[str, Any]) -> Hit:
    return Hit(fields["distance"], _document(fields), fields["score"])


def _bit(fields: Mapping[str, Any]) -> BitPair:
    """Return a bit; JSON has no infinity, which is the margin of a bit that no text can change."""
    margins = {
        f"{side}_margin": (math.inf if fields[side] else -math.inf)
        for side in ("query", "hit")
        if fields[f"{side}_margin"] is None
    }
    return BitPair(**{**fields, **margins})


def _shares(words: Iterable[Mapping[str, Any]]) -> tuple[WordShare, ...]:
    return tuple(
        WordShare(word["word"], word["agreeing"], word["differing"], tuple(map(tuple, word["spans"])))
        for word in words
    )
