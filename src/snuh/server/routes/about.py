"""Which collections there are, what they hold, what can be filtered by, and the model behind the codes."""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter, Query, Request, Response
from starlette.responses import StreamingResponse

from snuh.collection import Collection
from snuh.collection.model_files import files_of
from snuh.collection.results import document_to_json, info_to_json
from snuh.corpus import Document
from snuh.corpus.document import JSON
from snuh.errors import SnuhError
from snuh.filters.lexer import REFUSED_IN_NAME
from snuh.filters.tree import Field
from snuh.model import Model
from snuh.server.errors import check_length, of_error
from snuh.server.metrics import Metrics
from snuh.server.requests import answer, limits, served
from snuh.server.routes.openapi import answers, other_content
from snuh.server.schemas import (
    MAX_SAMPLED,
    CollectionsAnswer,
    FieldsAnswer,
    InfoAnswer,
    SampleAnswer,
    StatusAnswer,
)
from snuh.server.service import Json, Served

# Whether the server is alive, whether it can answer, and what it has done.

status_router = APIRouter(tags=["status"])

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


@status_router.get(
    "/health", summary="Tell that the server answers", responses=answers(StatusAnswer, others=())
)
async def health(request: Request) -> Response:
    """200 as long as the server answers at all."""
    return answer(request, {"status": "ok"})


@status_router.get(
    "/ready",
    summary="Tell whether every collection can be used",
    responses=answers(StatusAnswer, others=(503,)),
)
async def ready(request: Request) -> Response:
    """503 with the reason where one cannot."""
    every: dict[str, Served] = request.app.state.served
    for name, collection in every.items():
        try:
            await collection.reading.run(lambda opened: opened.version())
        except SnuhError as error:
            return of_error(error, {name: collection.folder}).response()
    return answer(request, {"status": "ready"})


@status_router.get(
    "/metrics",
    summary="Counters for Prometheus",
    response_class=Response,
    responses=answers(None, others=()) | other_content(PROMETHEUS),
)
async def metrics(request: Request) -> Response:
    """In Prometheus' text format."""
    counted: Metrics = request.app.state.metrics
    return Response(counted.text(), media_type=PROMETHEUS)


# A model as one file.

ZIP_TYPE = "application/zip"


def archived(model: Model) -> BytesIO:
    """Return the files of a model folder in a zip file, ready to be read."""
    archive = BytesIO()
    with zipfile.ZipFile(archive, "w") as together:
        for name, content in files_of(model).content.items():
            together.writestr(name, content)
    archive.seek(0)
    return archive


# What documents can be filtered by: the fields of a sample, their kinds and their most frequent values.

Keys: TypeAlias = tuple[str, ...]

SAMPLE, MAX_FIELDS, MAX_VALUES, MAX_DOCUMENTS_COUNTED = 10_000, 200, 30, 2_000
DEEPEST = 3  # objects in objects
MAX_VALUE = 100  # characters: a longer one is no value to choose from a list


@dataclass
class _Seen:
    """What a field has had."""

    documents: int = 0
    kinds: set[str] = field(default_factory=set)
    values: Counter[bool | int | float | str] = field(default_factory=Counter)
    min: float | None = None
    max: float | None = None

    def add(self, value: JSON) -> None:
        self.documents += 1
        self.kinds.add(_kind(value))
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, int | float) and not isinstance(item, bool):
                self.min = item if self.min is None else min(self.min, item)
                self.max = item if self.max is None else max(self.max, item)
            is_short = isinstance(item, bool | int | float) or (
                isinstance(item, str) and len(item) <= MAX_VALUE
            )
            if is_short and (item in self.values or len(self.values) < MAX_DOCUMENTS_COUNTED):
                self.values[item] += 1  # type: ignore[index]  # the kinds were looked at

    def to_json(self, keys: Keys) -> dict[str, Any]:
        kind = next(iter(self.kinds)) if len(self.kinds) == 1 else "mixed"
        told: dict[str, Any] = {
            "name": str(Field(keys)),
            "kind": kind,
            "documents": self.documents,
            "distinct": len(self.values),
        }
        if kind == "number":
            told |= {"min": self.min, "max": self.max}
        best = sorted(self.values.items(), key=lambda pair: (-pair[1], str(pair[0])))[:MAX_VALUES]
        return told | {"values": [{"value": value, "documents": count} for value, count in best]}


def describe_fields(collection: Collection) -> dict[str, Any]:
    """Return the fields of a sample of documents, labels and split first."""
    documents = collection.sample(SAMPLE).documents
    seen: dict[Keys, _Seen] = {("labels",): _Seen(), ("split",): _Seen()}
    for document in documents:
        for keys, value in _values(document):
            if keys in seen or len(seen) < MAX_FIELDS:
                seen.setdefault(keys, _Seen()).add(value)
    fields = [found.to_json(keys) for keys, found in seen.items() if found.documents]
    return {"documents": len(documents), "fields": fields}


def _values(document: Document) -> Iterator[tuple[Keys, JSON]]:
    if document.labels:
        yield ("labels",), list(document.labels)
    if document.split is not None:
        yield ("split",), document.split
    yield from _inside(document.metadata, ())


def _inside(fields: Mapping[str, JSON], above: Keys) -> Iterator[tuple[Keys, JSON]]:
    for name, value in fields.items():
        keys = (*above, name)
        if value is None or REFUSED_IN_NAME.search(name) or not name:
            continue  # a filter has no way to ask for it
        if isinstance(value, dict):
            if len(keys) < DEEPEST:
                yield from _inside(value, keys)
        else:
            yield keys, value


def _kind(value: JSON) -> str:
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, int | float):
        return "number"
    return "list" if isinstance(value, list) else "text"


router = APIRouter(prefix="/v1/collections", tags=["collections"])

INFO_SECONDS = 1.0  # to look at a sample of the codes takes its time
PIECE_BYTES = 256 << 10


@router.get("", summary="List the collections", responses=answers(CollectionsAnswer, others=(503,)))
async def collections(request: Request) -> Response:
    """In the order in which the server was given them."""
    every: dict[str, Served] = request.app.state.served

    def line(collection: Collection) -> Json:
        model = collection.model
        return {"documents": len(collection), "bits": model.bits, "method": model.method}

    lines = [
        {"name": name, **await one.remembered("line", line), "writable": request.state.may_write}
        for name, one in every.items()
    ]
    return answer(request, {"collections": lines})


@router.get("/{name}", summary="Describe a collection", responses=answers(InfoAnswer))
async def info(request: Request, name: str) -> Response:
    """As `snuh info --json`, without the folder."""

    def describe(collection: Collection) -> Json:
        version, found = collection.version(), collection.info()
        told = info_to_json(found, collection.model.training)
        del told["collection"]
        if found.index is not None:
            told["index"]["description"] = found.index.description
        return {"version": version, **told}

    # "snuh index" changes what is told here, and is no write.
    told = await served(request, name).remembered("info", describe, seconds=INFO_SECONDS)
    return answer(request, {"name": name, "writable": request.state.may_write, **told})


@router.get("/{name}/fields", summary="Tell what can be filtered by", responses=answers(FieldsAnswer))
async def fields(request: Request, name: str) -> Response:
    """The fields of a sample of documents, with their most frequent values."""
    return answer(request, await served(request, name).remembered("fields", describe_fields))


@router.get(
    "/{name}/sample",
    summary="Get some documents from all over the collection, and their codes",
    responses=answers(SampleAnswer),
)
async def sample(
    request: Request, name: str, limit: Annotated[int, Query(ge=1, le=MAX_SAMPLED)] = 100
) -> Response:
    """In the order in which they were added; those without a code are left out."""
    max_bytes = limits(request).answer_bytes

    def work(collection: Collection) -> Json:
        found = collection.sample(limit)
        check_length(sum(len(document.text) for document in found.documents), max_bytes)
        return {
            "documents": [document_to_json(document) for document in found.documents],
            "codes": [code.tobytes().hex() for code in found.codes],
        }

    return answer(request, await served(request, name).reading.run(work))


@router.get(
    "/{name}/model",
    summary="Get the model as a zip file",
    response_class=Response,
    responses=answers(None) | other_content(ZIP_TYPE, format="binary"),
)
async def model(request: Request, name: str) -> Response:
    """The files of a model folder, which "snuh encode" and `snuh.load` take."""
    archive = await served(request, name).reading.run(lambda collection: archived(collection.model))

    async def pieces() -> AsyncIterator[bytes]:
        with archive:
            while piece := archive.read(PIECE_BYTES):
                yield piece

    return StreamingResponse(pieces(), media_type=ZIP_TYPE)
