"""Routes that analyse a collection: the meaning of bits, duplicates, the map; and building the index."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from snuh.collection import Collection
from snuh.dedup import DEFAULT_THRESHOLD
from snuh.explain import bit_meanings
from snuh.server.jobs import JobKind, Jobs
from snuh.server.requests import (
    get_service,
    get_writable_service,
    json_response,
    raw_json_response,
    read_body,
)
from snuh.server.schemas import (
    WITH_BODY,
    BitsResponse,
    DuplicatesResponse,
    IndexRequest,
    IndexResponse,
    JobResponse,
    MapResponse,
    Responses,
    request_body,
    responses,
)
from snuh.server.service import CollectionService, Json

router = APIRouter(prefix="/v1/collections/{name}", tags=["insight"])

RUNNING: Responses = {202: {"model": JobResponse, "description": "The job is running: repeat the request."}}


@router.get("/bits", summary="Get the words that each bit stands for", responses=responses(BitsResponse))
async def bits(request: Request, name: str, words: Annotated[int, Query(ge=1, le=100)] = 10) -> Response:
    """Words of documents where a bit is 1, and where it is 0, grouped by similarity."""

    def compute(collection: Collection) -> Json:
        model = collection.model
        meanings = [asdict(meaning) for meaning in bit_meanings(model, words=words)]
        return {"method": model.method, "bits": model.bits, "meanings": meanings}

    return json_response(request, await get_service(request, name).cached(f"bits {words}", compute))


@router.get(
    "/duplicates",
    summary="Find duplicate documents",
    responses=responses(DuplicatesResponse) | RUNNING,
)
async def duplicates(
    request: Request,
    name: str,
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
    return await _job_response(request, get_service(request, name), "duplicates", options)


@router.get(
    "/map", summary="Get a two-dimensional map of the documents", responses=responses(MapResponse) | RUNNING
)
async def projection(request: Request, name: str) -> Response:
    """Computed once by a separate process, and stored: 202 until it is done."""
    return await _job_response(request, get_service(request, name), "map", {})


@router.post(
    "/index",
    summary="Build the index of approximate searches",
    responses=responses(IndexResponse, errors=WITH_BODY) | RUNNING,
    openapi_extra=request_body(IndexRequest),
)
async def index(request: Request, name: str) -> Response:
    """As `snuh index`, by a separate process: 202 until it is done; repeat the request for the result."""
    service = get_writable_service(request, name)
    body = await read_body(request, IndexRequest)
    return await _job_response(request, service, "index", body.model_dump())


async def _job_response(
    request: Request, service: CollectionService, kind: JobKind, options: Json
) -> Response:
    jobs: Jobs = request.app.state.jobs
    job = await service.reader.run(lambda collection: jobs.get(kind, collection, options))
    return raw_json_response(request, job.body, status=job.status)
