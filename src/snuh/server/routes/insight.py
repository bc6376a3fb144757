"""What a collection looks like: its bits in words, its duplicates, its map."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from snuh.collection import Collection
from snuh.duplicates import USUAL_THRESHOLD
from snuh.explain import bit_meanings
from snuh.server.answers import BitsAnswer, DuplicatesAnswer, MakingAnswer, MapAnswer
from snuh.server.asking import answer, raw_answer, served
from snuh.server.hits import Json
from snuh.server.jobs import Jobs
from snuh.server.routes.describing import Responses, answers

router = APIRouter(prefix="/v1/collections/{name}", tags=["insight"])

MAKING: Responses = {202: {"model": MakingAnswer, "description": "It is being made: ask again."}}


@router.get("/bits", summary="Tell what each bit stands for", responses=answers(BitsAnswer))
async def bits(request: Request, name: str, words: Annotated[int, Query(ge=1, le=100)] = 10) -> Response:
    """The words of documents where a bit is 1, and where it is 0, alike ones together."""

    def make(collection: Collection) -> Json:
        model = collection.model
        meanings = [asdict(meaning) for meaning in bit_meanings(model, words=words)]
        return {"method": model.method, "bits": model.bits, "meanings": meanings}

    return answer(await served(request, name).remembered(f"bits {words}", make))


@router.get(
    "/duplicates",
    summary="Find documents that repeat another one",
    responses=answers(DuplicatesAnswer) | MAKING,
)
async def duplicates(
    request: Request,
    name: str,
    threshold: Annotated[float, Query(gt=0, le=1)] = USUAL_THRESHOLD,
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
    jobs: Jobs = request.app.state.jobs
    made = await served(request, name).reading.run(
        lambda collection: jobs.get("duplicates", collection, options)
    )
    return raw_answer(made.body, status=made.status)


@router.get("/map", summary="Place documents in the plane", responses=answers(MapAnswer) | MAKING)
async def plane(request: Request, name: str) -> Response:
    """Made once by a process of its own, and kept: 202 until it is done."""
    jobs: Jobs = request.app.state.jobs
    made = await served(request, name).reading.run(lambda collection: jobs.get("map", collection))
    return raw_answer(made.body, status=made.status)
