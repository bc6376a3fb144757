"""Routes that analyse a collection: the meaning of bits, duplicates, the map; and building the index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response

from snuh.collection import Collection
from snuh.corpus import Document
from snuh.dedup import DEFAULT_THRESHOLD
from snuh.explain import bit_meanings
from snuh.filters import parse
from snuh.server.job_runner import place_documents
from snuh.server.jobs import JobKind, Jobs
from snuh.server.requests import LimitedRoute, json_response, raw_json_response
from snuh.server.routes.documents import Ids
from snuh.server.schemas import (
    WITH_BODY,
    BitsResponse,
    DuplicatesResponse,
    FieldValue,
    IndexRequest,
    IndexResponse,
    JobResponse,
    MapPositionsResponse,
    MapResponse,
    MapValuesResponse,
    Responses,
    errors,
)
from snuh.server.service import CollectionService, Json, Service, WritableService

router = APIRouter(
    prefix="/v1/collections/{name}",
    tags=["insight"],
    route_class=LimitedRoute,
    responses=errors(*WITH_BODY),
)

RUNNING: Responses = {202: {"model": JobResponse, "description": "The job is running: repeat the request."}}


@router.get("/bits", summary="Get the words that each bit stands for", response_model=BitsResponse)
async def get_bits(
    request: Request, service: Service, words: Annotated[int, Query(ge=1, le=100)] = 10
) -> Response:
    """Words of documents where a bit is 1, and where it is 0, grouped by similarity."""

    def compute(collection: Collection) -> Json:
        model = collection.model
        meanings = [asdict(meaning) for meaning in bit_meanings(model, words=words)]
        return {"method": model.method, "bits": model.bits, "meanings": meanings}

    return json_response(request, await service.cached(f"bits {words}", compute))


@router.get(
    "/duplicates", summary="Find duplicate documents", response_model=DuplicatesResponse, responses=RUNNING
)
async def find_duplicates(
    request: Request,
    service: Service,
    threshold: Annotated[float, Query(gt=0, le=1)] = DEFAULT_THRESHOLD,
    radius: Annotated[int | None, Query(ge=0, le=512)] = None,
    measure: Literal["cosine", "overlap"] = "cosine",
    group_by: Annotated[str | None, Query(max_length=200)] = None,
    target: Annotated[int | None, Query(ge=1, le=2**53)] = None,
    keep: Literal["first", "last", "longest"] = "first",
) -> Response:
    """Computed by a separate process: 202 until it is done."""
    options = {
        "threshold": threshold,
        "radius": radius,
        "measure": measure,
        "group_by": group_by,
        "target": target,
        "keep": keep,
    }
    return await _job_response(request, service, "duplicates", options)


@router.get(
    "/map",
    summary="Get a two-dimensional map of the documents",
    response_model=MapResponse,
    responses=RUNNING,
)
async def get_map(request: Request, service: Service) -> Response:
    """Computed once by a separate process, and stored: 202 until it is done."""
    return await _job_response(request, service, "map", {})


@router.get("/map/values", summary="Get a field of the documents on the map")
async def get_map_values(
    request: Request,
    service: Service,
    field: Annotated[str, Query(max_length=200, description="As filters write it, such as `desk.city`.")],
) -> MapValuesResponse:
    """In the order of the map's ids; the first item of a list."""
    jobs: Jobs = request.app.state.jobs
    (known,) = parse(f"{field} is null").walk()  # a FilterError is reported

    def task(collection: Collection) -> list[FieldValue]:
        ids = jobs.stored_map(collection)["ids"]
        documents = collection.get_many(ids, characters=0)
        return [_value_of(documents[doc_id], known.keys) for doc_id in ids if doc_id in documents]

    return MapValuesResponse(values=await service.reader.run(task))


@router.get("/map/positions", summary="Get the positions of documents on the map")
async def get_map_positions(request: Request, service: Service, id: Ids) -> MapPositionsResponse:
    """Of documents that are not among those of the map, too: next to those with the nearest codes."""
    jobs: Jobs = request.app.state.jobs

    def task(collection: Collection) -> list[tuple[float, float] | None]:
        documents = map(collection.get, id or ())
        return place_documents(collection.model, documents, jobs.stored_map(collection))

    return MapPositionsResponse(positions=await service.reader.run(task))


def _value_of(document: Document, keys: Sequence[str]) -> FieldValue:
    special: dict[str, Any] = {"id": document.id, "labels": list(document.labels), "split": document.split}
    value: Any = special if keys[0] in special else document.metadata
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    if isinstance(value, list):
        value = value[0] if value else None
    return value if isinstance(value, bool | int | float | str) else None


@router.post(
    "/index",
    summary="Build the index of approximate searches",
    response_model=IndexResponse,
    responses=RUNNING,
)
async def build_index(request: Request, service: WritableService, body: IndexRequest) -> Response:
    """As `snuh index`, by a separate process: 202 until it is done; repeat the request for the result."""
    return await _job_response(request, service, "index", body.model_dump())


async def _job_response(
    request: Request, service: CollectionService, kind: JobKind, options: Json
) -> Response:
    jobs: Jobs = request.app.state.jobs
    job = await service.reader.run(lambda collection: jobs.get(kind, collection, options))
    return raw_json_response(request, job.body, status=job.status)
