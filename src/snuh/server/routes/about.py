"""Which collections there are, what they hold, and what can be filtered by."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from snuh.collection import Collection
from snuh.collection.describing import info_to_json
from snuh.server.answers import CollectionsAnswer, FieldsAnswer, InfoAnswer
from snuh.server.asking import answer, served
from snuh.server.fields import describe_fields
from snuh.server.hits import Json
from snuh.server.routes.describing import answers
from snuh.server.served import Served

router = APIRouter(prefix="/v1/collections", tags=["collections"])


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
    return answer({"collections": lines})


@router.get("/{name}", summary="Describe a collection", responses=answers(InfoAnswer))
async def info(request: Request, name: str) -> Response:
    """As `snuh info --json`, without the folder."""

    def describe(collection: Collection) -> Json:
        told = info_to_json(collection.info(), collection.model.training)
        del told["collection"]
        return told

    told = await served(request, name).remembered("info", describe)
    return answer({"name": name, "writable": request.state.may_write, **told})


@router.get("/{name}/fields", summary="Tell what can be filtered by", responses=answers(FieldsAnswer))
async def fields(request: Request, name: str) -> Response:
    """The fields of a sample of documents, with their most frequent values."""
    return answer(await served(request, name).remembered("fields", describe_fields))
