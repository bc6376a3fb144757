"""Whether the server is alive, whether it can answer, and what it has done."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from snuh.errors import SnuhError
from snuh.server.answers import StatusAnswer
from snuh.server.asking import answer
from snuh.server.metrics import Metrics
from snuh.server.refusals import of_error
from snuh.server.routes.describing import answers, other_content
from snuh.server.served import Served

router = APIRouter(tags=["status"])

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


@router.get("/health", summary="Tell that the server answers", responses=answers(StatusAnswer, others=()))
async def health(request: Request) -> Response:
    """200 as long as the server answers at all."""
    return answer(request, {"status": "ok"})


@router.get(
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


@router.get(
    "/metrics",
    summary="Counters for Prometheus",
    response_class=Response,
    responses=answers(None, others=()) | other_content(PROMETHEUS),
)
async def metrics(request: Request) -> Response:
    """In Prometheus' text format."""
    counted: Metrics = request.app.state.metrics
    return Response(counted.text(), media_type=PROMETHEUS)
