"""Conversion between the JSON of a server and the values that a collection takes and returns."""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from tempfile import TemporaryFile
from typing import Any, Literal, TypeAlias
from urllib.parse import quote

import numpy as np

from snuh.collection.model_files import model_of
from snuh.collection.query import SearchOptions
from snuh.collection.results import IndexInfo, Info, Page, Sample
from snuh.corpus import Document
from snuh.corpus.document import FieldNames, to_document, to_fields
from snuh.corpus.rows import VECTOR_FIELD
from snuh.dedup import Duplicate
from snuh.errors import CollectionError, InputError
from snuh.explain import BitMeaning, BitPair, Explanation, WordContribution
from snuh.features.vectors import VectorInfo
from snuh.io import MODEL_FILES
from snuh.metrics import CodeHealth
from snuh.model import Model
from snuh.search import Hit, Hits

FieldValue: TypeAlias = bool | int | float | str
Payload: TypeAlias = Mapping[str, Any]  # Any: JSON values


@dataclass(frozen=True, slots=True)
class Facet:
    """A field to filter by, as found in a sample of the documents."""

    name: str  # as a filter takes it
    kind: Literal["text", "number", "boolean", "list", "mixed"]
    documents: int  # that have the field
    distinct: int
    min: float | None  # of numbers
    max: float | None
    values: tuple[tuple[FieldValue, int], ...]  # the most frequent values and their document counts


@dataclass(frozen=True, slots=True)
class DuplicateGroups:
    """Duplicate documents of a collection."""

    is_current: bool  # whether the collection has not changed since
    documents: int  # that were compared
    clusters: int
    duplicates: int  # documents that can be dropped
    radius: int
    threshold: float
    largest: tuple[tuple[Duplicate, ...], ...]  # the largest clusters, each with the kept document first


@dataclass(frozen=True, slots=True)
class Region:
    """A part of a map, named by typical words; those of a higher level are smaller."""

    level: int
    x: float
    y: float
    words: tuple[str, ...]
    documents: int


@dataclass(frozen=True, slots=True)
class Projection:
    """A two-dimensional map of documents, similar codes close together; one list entry per point."""

    is_current: bool
    documents: int  # of the whole collection
    ids: list[str]
    x: list[float]  # from -1 to 1
    y: list[float]
    titles: list[str]
    labels: list[str | None]  # the first label of each document
    regions: tuple[Region, ...]  # large ones first


def document_line(document: Document) -> bytes:
    """Return a document as a line of an upload."""
    record = {"id": document.id, "text": document.text, "labels": list(document.labels)}
    split = {} if document.split is None else {"split": document.split}
    if reserved := sorted({*record, "split"} & document.metadata.keys()):
        raise InputError(f"the document {document.id!r} has metadata called {reserved[0]!r}: rename it")
    vector = {} if document.vector is None else {VECTOR_FIELD: vector_to_json(document.vector)}
    return json.dumps({**record, **split, **to_fields(document.metadata), **vector}).encode() + b"\n"


def vector_to_json(vector: Any) -> list[float]:  # an array of any library, or a list
    """Return a vector as JSON values; InputError if JSON cannot hold it."""
    try:
        array = np.asarray(vector, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"a vector must be a list of numbers: {error}") from None
    if array.ndim != 1 or not np.isfinite(array).all():
        raise InputError("a vector must be a list of finite numbers")
    values: list[float] = array.tolist()
    return values


def quote_path(doc_id: str) -> str:
    """Return an id as a part of a path."""
    try:
        return quote(doc_id, safe="")
    except UnicodeEncodeError as error:
        raise InputError("the id contains an unpaired surrogate: send complete characters") from error


class LineBuffer:
    r"""Splits chunks into lines that end with "\n"; httpx would also split at separators within texts."""

    def __init__(self) -> None:
        self._incomplete = b""

    def push(self, chunk: bytes) -> list[bytes]:
        """Return the lines that a chunk completes."""
        *lines, self._incomplete = (self._incomplete + chunk).split(b"\n")
        return lines

    def rest(self) -> list[bytes]:
        """Return what follows the last end of a line."""
        return [self._incomplete] if self._incomplete else []


def split_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of chunks."""
    buffer = LineBuffer()
    for chunk in chunks:
        yield from buffer.push(chunk)
    yield from buffer.rest()


def options_to_json(options: SearchOptions) -> dict[str, Any]:
    """Return search options as JSON values; a filter becomes its text."""
    where = options.get("where")
    return {**options, "where": None if where is None else str(where)}


def parse_line(line: bytes) -> Document:
    """Parse a line of a download."""
    return to_document(json.loads(line), 0, FieldNames())


def parse_document(payload: Payload) -> Document:
    """Parse a document."""
    return Document(
        payload["id"], payload["text"], tuple(payload["labels"]), payload["split"], payload["metadata"]
    )


def parse_page(payload: Payload) -> Page:
    """Parse a page of documents."""
    return Page([parse_document(document) for document in payload["documents"]], payload["next"])


def parse_hits(payload: Payload) -> Hits:
    """Parse the hits of a query."""
    return Hits(map(parse_hit, payload["hits"]), note=payload["note"])


def parse_hit_lists(payload: Payload) -> list[Hits]:
    """Parse the hits of many queries."""
    return [parse_hits(result) for result in payload["results"]]


def parse_hit(payload: Payload) -> Hit:
    """Parse a hit."""
    matched = payload.get("matched")
    return Hit(
        payload["distance"],
        parse_document(payload),
        payload["score"],
        None if matched is None else tuple(matched),
        payload.get("word_score"),
        payload.get("code_score"),
    )


def parse_sample(payload: Payload) -> Sample:
    """Parse a sample; the codes of an empty one have zero bytes."""
    codes = [np.frombuffer(bytes.fromhex(code), dtype=np.uint8) for code in payload["codes"]]
    packed = np.array(codes, dtype=np.uint8) if codes else np.zeros((0, 0), dtype=np.uint8)
    return Sample([parse_document(document) for document in payload["documents"]], packed)


def parse_explanation(payload: Payload) -> Explanation:
    """Parse the explanation of a hit."""
    return Explanation(
        distance=payload["distance"],
        bits=tuple(_parse_bit_pair(bit) for bit in payload["bits"]),
        query_words=_parse_contributions(payload["query_words"]),
        hit_words=_parse_contributions(payload["hit_words"]),
        note=payload["note"],
    )


def parse_info(payload: Payload, *, name: str) -> Info:
    """Parse the description of a collection."""
    model, health, index = payload["model"], payload["health"], payload["index"]
    vectors = payload["vectors"]
    return Info(
        name=name,
        documents=payload["documents"],
        searchable=payload["searchable"],
        bits=model["bits"],
        method=model["method"],
        vectors=None if vectors is None else _parse_vector_info(vectors),
        embedding=None if vectors is None else vectors["embedding"],
        vector_fraction=None if vectors is None else vectors["fraction"],
        model=model["fingerprint"],
        fields=tuple(payload["fields"]),
        store_bytes=payload["store_bytes"],
        code_bytes=payload["code_bytes"],
        has_words=payload["has_words"],
        index=None if index is None else parse_index_info(index),
        health=None if health is None else _parse_health(health),
    )


def _parse_vector_info(payload: Payload) -> VectorInfo:
    return VectorInfo(*(payload[field.name] for field in fields(VectorInfo)))


def parse_index_info(payload: Payload) -> IndexInfo:
    """Parse the description of an index; fields that depend on the backend become its settings."""
    common = {name: payload[name] for name in ("k", "recall", "documents")}
    settings = {
        name: value
        for name, value in payload.items()
        if name not in {*common, "description", "state", "current"}
    }
    return IndexInfo(settings=settings, description=payload["description"], **common)


def parse_meaning(payload: Payload) -> BitMeaning:
    """Parse the meaning of a bit."""
    themes = {side: tuple(map(tuple, payload[side])) for side in ("on", "off")}
    return BitMeaning(**{**payload, **themes})


def parse_facet(payload: Payload) -> Facet:
    """Parse a facet."""
    values = tuple((item["value"], item["documents"]) for item in payload["values"])
    return Facet(**{"min": None, "max": None, **payload, "values": values})


def parse_duplicates(payload: Payload) -> DuplicateGroups:
    """Parse groups of duplicates."""
    return DuplicateGroups(
        is_current=payload["current"],
        documents=payload["documents"],
        clusters=payload["clusters"],
        duplicates=payload["duplicates"],
        radius=payload["radius"],
        threshold=payload["threshold"],
        largest=tuple(tuple(map(_parse_duplicate, cluster)) for cluster in payload["largest"]),
    )


def parse_projection(payload: Payload) -> Projection:
    """Parse a map."""
    values = {field.name: payload[field.name] for field in fields(Projection) if field.name in payload}
    regions = tuple(Region(**{**region, "words": tuple(region["words"])}) for region in payload["regions"])
    return Projection(**{**values, "is_current": payload["current"], "regions": regions})


def parse_model(chunks: Iterable[bytes]) -> Model:
    """Load the model from a zip file; only the files of a model folder are extracted."""
    with TemporaryFile() as archive:
        archive.writelines(chunks)
        try:
            with zipfile.ZipFile(archive) as file:
                content = {name: file.read(name) for name in MODEL_FILES & {*file.namelist()}}
        except zipfile.BadZipFile as error:
            raise CollectionError(f"the server sent an invalid model file: {error}") from error
    return model_of(content, where="the server")


def _parse_bit_pair(payload: Payload) -> BitPair:
    """Parse a bit; JSON has no infinity, the margin of a bit that no text can change."""
    margins = {
        f"{side}_margin": (math.inf if payload[side] else -math.inf)
        for side in ("query", "hit")
        if payload[f"{side}_margin"] is None
    }
    return BitPair(**{**payload, **margins})


def _parse_contributions(words: Iterable[Payload]) -> tuple[WordContribution, ...]:
    return tuple(
        WordContribution(word["word"], word["agreeing"], word["differing"], tuple(map(tuple, word["spans"])))
        for word in words
    )


def _parse_health(payload: Payload) -> CodeHealth:
    values = {field.name: payload[field.name] for field in fields(CodeHealth)}
    return CodeHealth(**{**values, "ones_fraction": tuple(values["ones_fraction"])})


def _parse_duplicate(payload: Payload) -> Duplicate:
    return Duplicate(
        id=payload["id"],
        keep=payload["action"] == "keep",
        cluster=payload["cluster"],
        representative=payload["representative"],
        similarity=payload["similarity"],
        distance=payload["distance"],
    )
