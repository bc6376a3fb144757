"""A collection on a server, with the methods of a collection in a folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from snuh.client import reading
from snuh.client.connection import Connection
from snuh.client.results import DuplicateGroups, FieldFacts, Plane
from snuh.codes import check_codes
from snuh.collection import Added, shown
from snuh.collection.collection import MAX_CHARACTERS
from snuh.collection.incoming import checked_documents
from snuh.collection.results import Fast, Info, Sample
from snuh.collection.searching import SearchOptions
from snuh.corpus import Document
from snuh.dedup import Keep
from snuh.duplicates import Measure
from snuh.errors import InputError, UnknownDocumentError
from snuh.explain import BitMeaning, Explanation
from snuh.filters import Filter
from snuh.model import Model
from snuh.search import Hit

USUAL_PLACE = "http://127.0.0.1:8765"
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
        self, name: str, *, server: str = USUAL_PLACE, token: str | None = None, timeout: float = 60.0
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
        lines = (reading.line_of(document) for document in checked_documents(documents, max_characters))
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

    def make_lists(self, *, k: int = 10, recall: float = 0.99, patience: float = PATIENCE) -> Fast:
        """Prepare searches with `fast`, as `Collection.make_lists` does; wait up to `patience` seconds."""
        asked = {"k": k, "recall": recall}
        return reading.read_fast(
            self._connection.ask_until_made("POST", "/lists", json=asked, patience=patience)
        )

    # Reading

    @property
    def model(self) -> Model:
        """The model that the codes come from, sent by the server and kept until it has another one."""
        fingerprint = str(self._told()["model"]["fingerprint"])
        if self._model is None or self._model[0] != fingerprint:
            with self._connection.stream("/model") as parts:
                self._model = (fingerprint, reading.read_model(parts))
        return self._model[1]

    def version(self) -> str:
        """Return what is another text after every write, whoever wrote."""
        return str(self._told()["version"])

    def get(self, identity: str) -> Document:
        """Return a document; UnknownDocumentError where there is none of that id."""
        (found,) = self._get("/documents", id=identity)["documents"]
        return reading.read_document(found)

    def documents(self, *, where: str | Filter | None = None) -> Iterator[Document]:
        """Yield the documents in order of insertion; those that come meanwhile are left out."""
        params = {} if where is None else {"where": str(where)}
        with self._connection.stream("/documents/lines", params=params) as parts:
            yield from map(reading.read_line, reading.lines_of(parts))

    def sample(self, most: int) -> Sample:
        """Return up to `most` documents that have a code, from all over the collection, and their codes."""
        return reading.read_sample(self._get("/sample", most=most))

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

    def similar(self, identity: str, **options: Unpack[SearchOptions]) -> list[Hit]:
        """Find the documents nearest to one of the collection, itself left out."""
        return self._hits("/similar", {"id": identity}, options)

    def explain(self, text: str, identity: str) -> Explanation:
        """Say which words of a query and of a document made their bits agree or differ."""
        return reading.read_explanation(self._post("/explain", {"text": text, "id": identity}))

    def info(self) -> Info:
        """Describe the collection; its address is that of the server, and its name."""
        return reading.read_info(self._told(), address=shown(f"{self.server}/{self.name}"))

    # What a collection in a folder leaves to other functions

    def encode(self, texts: Sequence[str]) -> list[str | None]:
        """Return the code of each text as hexadecimal digits; None where the model knows no word of it."""
        codes: list[str | None] = []
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            codes += self._post("/encode", {"texts": list(texts[start : start + TEXTS_AT_ONCE])})["codes"]
        return codes

    def bits(self, *, words: int = 10) -> list[BitMeaning]:
        """Tell what each bit stands for, as `snuh.explain.bit_meanings` does."""
        return [reading.read_meaning(told) for told in self._get("/bits", words=words)["meanings"]]

    def fields(self) -> list[FieldFacts]:
        """Tell what can be filtered by, from a sample of the documents."""
        return [reading.read_field(told) for told in self._get("/fields")["fields"]]

    def duplicates(
        self, *, patience: float = PATIENCE, **options: Unpack[DuplicateOptions]
    ) -> DuplicateGroups:
        """Find documents that repeat another one, and wait up to `patience` seconds for that."""
        given = {name: value for name, value in options.items() if value is not None}
        return reading.read_duplicates(
            self._connection.ask_until_made("GET", "/duplicates", params=given, patience=patience)
        )

    def map(self, *, patience: float = PATIENCE) -> Plane:
        """Place documents in the plane, and wait up to `patience` seconds for that."""
        return reading.read_plane(self._connection.ask_until_made("GET", "/map", patience=patience))

    # Within

    def _told(self) -> dict[str, Any]:
        return self._get("")

    def _get(self, path: str, **params: str | int) -> dict[str, Any]:
        return self._connection.ask("GET", path, params=params)

    def _post(self, path: str, asked: dict[str, Any]) -> dict[str, Any]:
        return self._connection.ask("POST", path, json=asked)

    def _hits(self, path: str, asked: dict[str, Any], options: SearchOptions) -> list[Hit]:
        asked = {**asked, "characters": None, **reading.options_to_json(options)}
        return [reading.read_hit(found) for found in self._post(path, asked)["hits"]]

    def _search_batches(
        self, kind: str, queries: list[str], options: SearchOptions
    ) -> list[list[Hit] | None]:
        k = options.get("k", 10)
        at_once = min(TEXTS_AT_ONCE, HITS_AT_ONCE // k) if 0 < k <= HITS_AT_ONCE else 1  # else it is refused
        found: list[list[Hit] | None] = []
        for start in range(0, len(queries), at_once):
            part = {kind: queries[start : start + at_once], "characters": None}
            for one in self._post("/search/batch", part | reading.options_to_json(options))["answers"]:
                found.append(None if one["hits"] is None else [reading.read_hit(hit) for hit in one["hits"]])
        return found
