"""What a collection looks like: its bits in words, its duplicates, its map; and lists for fast searches."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from snuh.collection import Collection
from snuh.dedup import DEFAULT_THRESHOLD
from snuh.explain import bit_meanings
from snuh.server.jobs import Jobs, Kind
from snuh.server.requests import answer, raw_answer, read_ask, served, served_for_writing
from snuh.server.routes.openapi import WITH_BODY, Responses, answers, body_of
from snuh.server.schemas import BitsAnswer, DuplicatesAnswer, ListsAnswer, ListsAsk, MakingAnswer, MapAnswer
from snuh.server.service import Json, Served

router = APIRouter(prefix="/v1/collections/{name}", tags=["insight"])

MAKING: Responses = {202: {"model": MakingAnswer, "description": "It is being made: ask again."}}


@router.get("/bits", summary="Tell what each bit stands for", responses=answers(BitsAnswer))
async def bits(request: Request, name: str, words: Annotated[int, Query(ge=1, le=100)] = 10) -> Response:
    """The words of documents where a bit is 1, and where it is 0, alike ones together."""

    def make(collection: Collection) -> Json:
        model = collection.model
        meanings = [asdict(meaning) for meaning in bit_meanings(model, words=words)]
        return {"method": model.method, "bits": model.bits, "meanings": meanings}

    return answer(request, await served(request, name).remembered(f"bits {words}", make))


@router.get(
    "/duplicates",
    summary="Find documents that repeat another one",
    responses=answers(DuplicatesAnswer) | MAKING,
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
    """Made by a process of its own: 202 until it is done."""
    options = {
        "threshold": threshold,
        "radius": radius,
        "measure": measure,
        "group_by": group_by,
        "target": target,
        "keep": keep,
    }
    return await _made(request, served(request, name), "duplicates", options)


@router.get("/map", summary="Place documents in the plane", responses=answers(MapAnswer) | MAKING)
async def plane(request: Request, name: str) -> Response:
    """Made once by a process of its own, and kept: 202 until it is done."""
    return await _made(request, served(request, name), "map", {})


@router.post(
    "/lists",
    summary="Prepare fast searches",
    responses=answers(ListsAnswer, others=WITH_BODY) | MAKING,
    openapi_extra=body_of(ListsAsk),
)
async def lists(request: Request, name: str) -> Response:
    """As "snuh index", by a process of its own: 202 until it is done, then once more the same to be told."""
    collection = served_for_writing(request, name)
    ask = await read_ask(request, ListsAsk)
    return await _made(request, collection, "lists", ask.model_dump())


async def _made(request: Request, collection: Served, kind: Kind, options: Json) -> Response:
    jobs: Jobs = request.app.state.jobs
    made = await collection.reading.run(lambda opened: jobs.get(kind, opened, options))
    return raw_answer(request, made.body, status=made.status)
