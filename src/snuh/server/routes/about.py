"""Which collections there are, what they hold, what can be filtered by, and the model behind the codes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from starlette.responses import StreamingResponse

from snuh.collection import Collection
from snuh.collection.describing import info_to_json
from snuh.server.answers import CollectionsAnswer, FieldsAnswer, InfoAnswer, SampleAnswer
from snuh.server.archive import ZIP_TYPE, archived
from snuh.server.asking import answer, limits, served
from snuh.server.asks import MOST_SAMPLED
from snuh.server.fields import describe_fields
from snuh.server.hits import Json
from snuh.server.refusals import check_length
from snuh.server.routes.describing import answers, other_content
from snuh.server.routes.documents import document_to_json
from snuh.server.served import Served

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
        if found.fast is not None:
            told["fast"]["words"] = found.fast.words
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
    request: Request, name: str, most: Annotated[int, Query(ge=1, le=MOST_SAMPLED)] = 100
) -> Response:
    """In the order in which they were added; those without a code are left out."""
    most_bytes = limits(request).answer_bytes

    def work(collection: Collection) -> Json:
        found = collection.sample(most)
        check_length(sum(len(document.text) for document in found.documents), most_bytes)
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
