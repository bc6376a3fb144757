"""Routes that describe collections: info, facets, samples and the model; and the status of the server."""

from __future__ import annotations

import re
import zipfile
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO
from typing import Annotated, TypeAlias

import numpy as np
from fastapi import APIRouter, Query, Request, Response
from starlette.responses import StreamingResponse

from snuh.codes import unpack
from snuh.collection import Collection
from snuh.collection.model_files import files_of
from snuh.collection.query import document_to_json
from snuh.collection.results import info_to_json
from snuh.corpus import Document
from snuh.corpus.document import JSON
from snuh.errors import SnuhError
from snuh.filters.parser import REFUSED_IN_NAME
from snuh.filters.tree import Field
from snuh.model import Model
from snuh.search import text_length
from snuh.server.job_runner import TITLE_SOURCE_CHARACTERS, title_of
from snuh.server.middleware import Metrics
from snuh.server.requests import (
    check_response_size,
    from_library_error,
    get_limits,
    json_response,
    unavailable,
)
from snuh.server.routes.documents import CHUNK_BYTES
from snuh.server.schemas import (
    MAX_FILTER_CHARACTERS,
    MAX_SAMPLED,
    CollectionsResponse,
    CountResponse,
    ExamplesResponse,
    FacetsResponse,
    InfoResponse,
    SampleResponse,
    StatusResponse,
    errors,
    other_content,
)
from snuh.server.service import Json, Service, get_services

FieldPath: TypeAlias = tuple[str, ...]  # keys of nested objects

INFO_MAX_AGE = 1.0  # seconds: describing the codes of a sample is slow
MAX_FACET_DOCUMENTS = 30_000  # of larger collections, a sample of this size is counted
EXAMPLE_SAMPLE, MAX_EXAMPLES, MAX_EXAMPLE_WORDS, MAX_EXAMPLE_CHARACTERS = 300, 6, 8, 60
SENTENCE_END = re.compile(r"(?<=\w\w)[.!?]\s|[。！？]")
REPLY = re.compile(r"^((re|fwd?|aw)\s*:\s*)+", re.IGNORECASE)
MAX_FACETS, MAX_FACET_VALUES, MAX_COUNTED_VALUES = 200, 30, 2_000
MAX_NESTING = 3  # of objects
MAX_VALUE_CHARACTERS = 100  # longer values are not offered as choices
PROMETHEUS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
ZIP_TYPE = "application/zip"

router = APIRouter(
    prefix="/v1/collections",
    tags=["collections"],
    responses=errors(400, 404, 413, 503),
)
status_router = APIRouter(tags=["status"], responses=errors(503))


@router.get("", summary="List the collections", response_model=CollectionsResponse)
async def list_collections(request: Request) -> Response:
    """In the order of the command line."""

    def summarize(collection: Collection) -> Json:
        model = collection.model
        return {"documents": len(collection), "bits": model.bits, "method": model.method}

    summaries = [
        {
            "name": name,
            **await service.cached("summary", summarize, is_status=True),
            "writable": request.state.may_write,
        }
        for name, service in get_services(request).items()
    ]
    return json_response(request, {"collections": summaries})


@router.get("/{name}", summary="Describe a collection", response_model=InfoResponse)
async def get_info(request: Request, service: Service) -> Response:
    """As `snuh info --json`, without the folder."""

    def describe(collection: Collection) -> Json:
        version, facts = collection.version(), collection.info()
        values = info_to_json(facts, collection.model.training)
        del values["collection"]
        if facts.index is not None:
            values["index"]["description"] = facts.index.description
        return {"version": version, **values}

    # Building an index changes the info but not the version, hence the maximum age.
    values = await service.cached("info", describe, max_age=INFO_MAX_AGE, is_status=True)
    return json_response(request, {"name": service.name, "writable": request.state.may_write, **values})


@router.get("/{name}/facets", summary="List the fields to filter by", response_model=FacetsResponse)
async def get_facets(request: Request, service: Service) -> Response:
    """The fields of the documents, with their most frequent values; of a sample if there are many."""
    return json_response(request, await service.cached("facets", compute_facets))


@router.get("/{name}/count", summary="Count the documents that match a filter")
async def count_documents(
    service: Service,
    where: Annotated[
        str | None, Query(max_length=MAX_FILTER_CHARACTERS, description="All by default.")
    ] = None,
) -> CountResponse:
    """The number is exact."""
    return CountResponse(documents=await service.reader.run(lambda collection: collection.count(where=where)))


@router.get("/{name}/examples", summary="Get queries to try", response_model=ExamplesResponse)
async def get_examples(request: Request, service: Service) -> Response:
    """Titles of documents that differ from each other."""
    return json_response(request, await service.cached("examples", example_queries))


@router.get(
    "/{name}/sample",
    summary="Get a sample of the documents with their codes",
    response_model=SampleResponse,
)
async def get_sample(
    request: Request, service: Service, limit: Annotated[int, Query(ge=1, le=MAX_SAMPLED)] = 100
) -> Response:
    """Spread over the whole collection, in insertion order; documents without a code are omitted."""
    max_bytes = get_limits(request).response_bytes

    def task(collection: Collection) -> Json:
        lengths = map(text_length, collection.sample(limit, characters=0).documents)
        check_response_size(sum(lengths), max_bytes)
        sample = collection.sample(limit)
        return {
            "documents": [document_to_json(document) for document in sample.documents],
            "codes": [code.tobytes().hex() for code in sample.codes],
        }

    return json_response(request, await service.reader.run(task))


@router.get(
    "/{name}/model",
    summary="Download the model as a zip file",
    response_class=Response,
    responses=other_content(ZIP_TYPE, format="binary"),
)
async def get_model(service: Service) -> Response:
    """The files of the model folder, as `snuh encode` and `snuh.load` take it."""
    archive = await service.reader.run(lambda collection: zip_model(collection.model))

    async def chunks() -> AsyncIterator[bytes]:
        with archive:
            while chunk := archive.read(CHUNK_BYTES):
                yield chunk

    return StreamingResponse(chunks(), media_type=ZIP_TYPE)


@status_router.get("/health", summary="Check that the server is running")
async def get_health() -> StatusResponse:
    """200 whenever the server responds at all."""
    return StatusResponse(status="ok")


@status_router.get("/ready", summary="Check that all collections can be searched")
async def get_readiness(request: Request) -> StatusResponse:
    """503 with the reason if one cannot, or not yet as fast as it will be."""
    for name, service in get_services(request).items():
        if not service.is_warm:
            raise unavailable(f"{name} is warming up: try again later")
        try:
            await service.status.run(lambda collection: collection.version())
        except SnuhError as error:
            raise from_library_error(error, {name: service.folder}) from error
    return StatusResponse(status="ready")


@status_router.get(
    "/metrics",
    summary="Get Prometheus metrics",
    response_class=Response,
    responses=other_content(PROMETHEUS_TYPE),
)
async def get_metrics(request: Request) -> Response:
    """In the Prometheus text format."""
    server_metrics: Metrics = request.app.state.metrics
    for name, service in get_services(request).items():
        with suppress(SnuhError):  # an unavailable collection keeps its last values
            documents = await service.cached("documents", len, is_status=True)
            server_metrics.set_collection(name, documents=documents, queue_length=service.queue_length)
    server_metrics.set_jobs(request.app.state.jobs.running)
    return Response(server_metrics.text(), media_type=PROMETHEUS_TYPE)


def zip_model(model: Model) -> BytesIO:
    """Return a zip file with the files of a model folder, positioned at its start."""
    archive = BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        for name, content in files_of(model).content.items():
            file.writestr(name, content)
    archive.seek(0)
    return archive


def example_queries(collection: Collection) -> Json:
    """Choose titles, or first sentences, of a few words whose codes are far from each other."""
    model = collection.model
    documents = collection.sample(EXAMPLE_SAMPLE, characters=TITLE_SOURCE_CHARACTERS).documents
    titles = [SENTENCE_END.split(REPLY.sub("", title_of(document)), maxsplit=1)[0] for document in documents]
    phrases = [
        title
        for title in dict.fromkeys(title.strip(" .:-") for title in titles)
        if len(title.split()) <= MAX_EXAMPLE_WORDS and len(title) <= MAX_EXAMPLE_CHARACTERS
    ]
    if model.features is None or not phrases:
        return {"queries": []}
    rows = model.features.transform(phrases)
    known = np.flatnonzero(np.diff(rows.indptr) >= 2)
    codes = unpack(model.encoder.encode(rows[known]))
    chosen: list[int] = []
    nearest = np.full(len(known), model.bits)  # distance of each phrase from the chosen ones
    while len(chosen) < min(MAX_EXAMPLES, len(known)):
        best = int(np.argmax(nearest))
        chosen.append(best)
        nearest = np.minimum(nearest, (codes != codes[best]).sum(axis=1))
        nearest[best] = -1
    return {"queries": [phrases[known[index]] for index in chosen]}


def compute_facets(collection: Collection) -> Json:
    """Return the fields of all documents, or of a sample if there are many, labels and split first."""
    total = collection.count()
    documents: Iterable[Document] = collection.documents()
    if total > MAX_FACET_DOCUMENTS:
        documents = collection.sample(MAX_FACET_DOCUMENTS, characters=0).documents
    seen = 0
    counters: dict[FieldPath, _FacetCounter] = {("labels",): _FacetCounter(), ("split",): _FacetCounter()}
    for document in documents:
        seen += 1
        for path, value in _document_values(document):
            if path in counters or len(counters) < MAX_FACETS:
                counters.setdefault(path, _FacetCounter()).add(value)
    return {
        "documents": seen,
        "total": total,
        "facets": [counter.to_json(path) for path, counter in counters.items() if counter.documents],
    }


@dataclass
class _FacetCounter:
    """Counts the values of one field."""

    documents: int = 0
    kinds: set[str] = field(default_factory=set)
    values: Counter[bool | int | float | str] = field(default_factory=Counter)
    min: float | None = None
    max: float | None = None

    def add(self, value: JSON) -> None:
        self.documents += 1
        self.kinds.add(_kind_of(value))
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, int | float) and not isinstance(item, bool):
                self.min = item if self.min is None else min(self.min, item)
                self.max = item if self.max is None else max(self.max, item)
            is_countable = isinstance(item, bool | int | float) or (
                isinstance(item, str) and len(item) <= MAX_VALUE_CHARACTERS
            )
            if is_countable and (item in self.values or len(self.values) < MAX_COUNTED_VALUES):
                self.values[item] += 1  # type: ignore[index]  # the type was checked above

    def to_json(self, path: FieldPath) -> Json:
        kind = next(iter(self.kinds)) if len(self.kinds) == 1 else "mixed"
        facet: Json = {
            "name": str(Field(path)),
            "kind": kind,
            "documents": self.documents,
            "distinct": len(self.values),
        }
        if kind == "number":
            facet |= {"min": self.min, "max": self.max}
        frequent = sorted(self.values.items(), key=lambda pair: (-pair[1], str(pair[0])))[:MAX_FACET_VALUES]
        return facet | {"values": [{"value": value, "documents": count} for value, count in frequent]}


def _document_values(document: Document) -> Iterator[tuple[FieldPath, JSON]]:
    if document.labels:
        yield ("labels",), list(document.labels)
    if document.split is not None:
        yield ("split",), document.split
    yield from _nested_values(document.metadata, ())


def _nested_values(fields: Mapping[str, JSON], parents: FieldPath) -> Iterator[tuple[FieldPath, JSON]]:
    for name, value in fields.items():
        path = (*parents, name)
        if value is None or REFUSED_IN_NAME.search(name) or not name:
            continue  # filters cannot express it
        if isinstance(value, dict):
            if len(path) < MAX_NESTING:
                yield from _nested_values(value, path)
        else:
            yield path, value


def _kind_of(value: JSON) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "list" if isinstance(value, list) else "text"
