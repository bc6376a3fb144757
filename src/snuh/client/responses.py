"""From the JSON of a server to the values that a collection answers with, and back."""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from tempfile import TemporaryFile
from typing import Any, Literal, TypeAlias

import numpy as np

from snuh.collection.model_files import model_of
from snuh.collection.query import SearchOptions
from snuh.collection.results import IndexInfo, Info, Sample
from snuh.corpus import Document
from snuh.dedup import Duplicate
from snuh.errors import CollectionError, InputError
from snuh.explain import BitMeaning, BitPair, Explanation, WordContribution
from snuh.io import MODEL_FILES
from snuh.metrics import CodeHealth
from snuh.model import Model
from snuh.search import Hit

# What a server tells beyond what a collection does.

Value: TypeAlias = bool | int | float | str


@dataclass(frozen=True, slots=True)
class FieldFacts:
    """A field that a filter can ask for, in a sample of the documents."""

    name: str  # as a filter takes it
    kind: Literal["text", "number", "truth", "list", "mixed"]
    documents: int  # that have it
    distinct: int
    min: float | None  # of numbers
    max: float | None
    values: tuple[tuple[Value, int], ...]  # the most frequent ones, and how many documents have each


@dataclass(frozen=True, slots=True)
class DuplicateGroups:
    """Which documents repeat another one, as of some moment."""

    is_current: bool  # whether documents have neither come nor gone since
    documents: int  # looked at
    clusters: int
    duplicates: int  # documents that could go
    radius: int
    threshold: float
    biggest: tuple[tuple[Duplicate, ...], ...]  # the biggest clusters, of each the kept document first


@dataclass(frozen=True, slots=True)
class Plane:
    """Documents in the plane, those with similar codes near each other; an entry a point in each list."""

    is_current: bool
    documents: int  # of the whole collection
    ids: list[str]
    x: list[float]  # from -1 to 1
    y: list[float]
    titles: list[str]
    labels: list[str | None]  # the first of each document


Told: TypeAlias = Mapping[str, Any]  # Any: whatever JSON can say


def line_of(document: Document) -> bytes:
    """Return a document as a line of an upload."""
    own = {"id": document.id, "text": document.text, "labels": list(document.labels)}
    split = {} if document.split is None else {"split": document.split}
    if taken := sorted({*own, "split"} & document.metadata.keys()):
        raise InputError(f"the document {document.id!r} has metadata called {taken[0]!r}: rename it")
    return json.dumps({**own, **split, **document.metadata}).encode() + b"\n"


def lines_of(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield whole lines; to httpx a line also ends at characters that may stand in a text."""
    rest = b""
    for part in parts:
        *whole, rest = (rest + part).split(b"\n")
        yield from whole
    if rest:
        yield rest


def options_to_json(options: SearchOptions) -> dict[str, Any]:
    """Return the options of a search; a filter is sent as its text."""
    where = options.get("where")
    return {**options, "where": None if where is None else str(where)}


def read_line(line: bytes) -> Document:
    """Return the document of a line of a download."""
    metadata = json.loads(line)
    own = {name: metadata.pop(name) for name in ("id", "text", "labels", "split")}
    return read_document({**own, "metadata": metadata})


def read_document(told: Told) -> Document:
    """Return a document."""
    return Document(told["id"], told["text"], tuple(told["labels"]), told["split"], told["metadata"])


def read_hit(told: Told) -> Hit:
    """Return a hit."""
    return Hit(told["distance"], read_document(told), told["score"])


def read_sample(told: Told) -> Sample:
    """Return a sample; an empty one has codes of no bytes."""
    codes = [np.frombuffer(bytes.fromhex(code), dtype=np.uint8) for code in told["codes"]]
    packed = np.array(codes, dtype=np.uint8) if codes else np.zeros((0, 0), dtype=np.uint8)
    return Sample([read_document(document) for document in told["documents"]], packed)


def read_explanation(told: Told) -> Explanation:
    """Return an explanation."""
    return Explanation(
        distance=told["distance"],
        bits=tuple(_read_bit(bit) for bit in told["bits"]),
        query_words=_read_shares(told["query_words"]),
        hit_words=_read_shares(told["hit_words"]),
    )


def read_info(told: Told, *, name: str) -> Info:
    """Return the description of a collection."""
    model, health, index = told["model"], told["health"], told["index"]
    return Info(
        name=name,
        documents=told["documents"],
        searchable=told["searchable"],
        bits=model["bits"],
        method=model["method"],
        model=model["fingerprint"],
        fields=tuple(told["fields"]),
        store_bytes=told["store_bytes"],
        code_bytes=told["code_bytes"],
        index=None if index is None else read_index_info(index),
        health=None if health is None else _read_health(health),
    )


def read_index_info(told: Told) -> IndexInfo:
    """Return the index that approximate searches use."""
    own = {field.name: told[field.name] for field in fields(IndexInfo) if field.name != "settings"}
    settings = {name: value for name, value in told.items() if name not in {*own, "state", "current"}}
    return IndexInfo(settings=settings, **own)


def read_meaning(told: Told) -> BitMeaning:
    """Return what a bit stands for."""
    themes = {side: tuple(map(tuple, told[side])) for side in ("on", "off")}
    return BitMeaning(**{**told, **themes})


def read_field(told: Told) -> FieldFacts:
    """Return what is known of a field."""
    values = tuple((one["value"], one["documents"]) for one in told["values"])
    return FieldFacts(**{"min": None, "max": None, **told, "values": values})


def read_duplicates(told: Told) -> DuplicateGroups:
    """Return groups of duplicates."""
    return DuplicateGroups(
        is_current=told["current"],
        documents=told["documents"],
        clusters=told["clusters"],
        duplicates=told["duplicates"],
        radius=told["radius"],
        threshold=told["threshold"],
        biggest=tuple(tuple(map(_read_duplicate, cluster)) for cluster in told["biggest"]),
    )


def read_plane(told: Told) -> Plane:
    """Return documents in the plane."""
    own = {field.name: told[field.name] for field in fields(Plane) if field.name != "is_current"}
    return Plane(is_current=told["current"], **own)


def read_model(parts: Iterable[bytes]) -> Model:
    """Return the model of a zip file; nothing but the files of a model folder is taken from it."""
    with TemporaryFile() as archive:
        archive.writelines(parts)
        try:
            with zipfile.ZipFile(archive) as together:
                content = {name: together.read(name) for name in MODEL_FILES & {*together.namelist()}}
        except zipfile.BadZipFile as error:
            raise CollectionError(f"the server sent no model: {error}") from error
    return model_of(content, where="the server")


def _read_bit(told: Told) -> BitPair:
    """Return a bit; JSON has no infinity, which is the margin of a bit that no text can change."""
    margins = {
        f"{side}_margin": (math.inf if told[side] else -math.inf)
        for side in ("query", "hit")
        if told[f"{side}_margin"] is None
    }
    return BitPair(**{**told, **margins})


def _read_shares(words: Iterable[Told]) -> tuple[WordContribution, ...]:
    return tuple(
        WordContribution(word["word"], word["agreeing"], word["differing"], tuple(map(tuple, word["spans"])))
        for word in words
    )


def _read_health(told: Told) -> CodeHealth:
    own = {field.name: told[field.name] for field in fields(CodeHealth)}
    return CodeHealth(**{**own, "ones_share": tuple(own["ones_share"])})


def _read_duplicate(told: Told) -> Duplicate:
    return Duplicate(
        id=told["id"],
        keep=told["action"] == "keep",
        cluster=told["cluster"],
        representative=told["representative"],
        similarity=told["similarity"],
        distance=told["distance"],
    )
