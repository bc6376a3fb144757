"""Documents: get, add or replace, delete."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from snuh.collection import Added, Collection
from snuh.corpus import Document
from snuh.server.answers import AddAnswer, DeleteAnswer, DocumentsAnswer
from snuh.server.asking import answer, check_one_of, limits, read_ask, served, served_for_writing
from snuh.server.asks import ID_CHARACTERS, MOST_GOT, AddAsk, DeleteAsk
from snuh.server.hits import Json
from snuh.server.refusals import check_length
from snuh.server.routes.describing import WITH_BODY, answers, body_of

router = APIRouter(prefix="/v1/collections/{name}", tags=["documents"])

Ids = Annotated[
    list[Annotated[str, Query(max_length=ID_CHARACTERS)]],
    Query(min_length=1, max_length=MOST_GOT, description="Once for each document."),
]


@router.get("/documents", summary="Get documents by their ids", responses=answers(DocumentsAnswer))
async def get(request: Request, name: str, id: Ids) -> Response:
    """All of them, or 404 where one is unknown."""
    most_bytes = limits(request).answer_bytes

    def work(collection: Collection) -> Json:
        documents, length = [], 0
        for identity in id:
            documents.append(document_to_json(collection.get(identity)))
            length += len(documents[-1]["text"])
            check_length(length, most_bytes)
        return {"documents": documents}

    return answer(request, await served(request, name).reading.run(work))


@router.post(
    "/documents",
    summary="Add or replace documents",
    responses=answers(AddAnswer, others=WITH_BODY),
    openapi_extra=body_of(AddAsk),
)
async def add(request: Request, name: str) -> Response:
    """All of them or none; when the answer comes they are on the disk."""
    collection = served_for_writing(request, name)
    ask = await read_ask(request, AddAsk)
    records = [document.record for document in ask.documents]

    def work(opened: Collection) -> Json:
        return added_to_json(opened.add(records), opened)

    told = await collection.writing.run(work)
    request.app.state.metrics.count_written(name, told["inserted"] + told["replaced"])
    return answer(request, told)


@router.post(
    "/documents/delete",
    summary="Delete documents by their ids or by a filter",
    responses=answers(DeleteAnswer, others=WITH_BODY),
    openapi_extra=body_of(DeleteAsk),
)
async def delete(request: Request, name: str) -> Response:
    """All of them or none; 404 where an id is unknown."""
    collection = served_for_writing(request, name)
    ask = await read_ask(request, DeleteAsk)
    check_one_of(ask, "ids", "where")

    def work(opened: Collection) -> Json:
        deleted = opened.delete_where(ask.where) if ask.where is not None else opened.delete(ask.ids or ())
        return {"deleted": deleted, "documents": len(opened)}

    told = await collection.writing.run(work)
    request.app.state.metrics.count_written(name, told["deleted"])
    return answer(request, told)


def document_to_json(document: Document) -> Json:
    """Return a whole document as plain values."""
    return {
        "id": document.id,
        "text": document.text,
        "labels": document.labels,
        "split": document.split,
        "metadata": document.metadata,
    }


def added_to_json(added: Added, collection: Collection) -> Json:
    """Return what happened, and how many documents there are now."""
    return {
        "inserted": added.inserted,
        "replaced": added.replaced,
        "without_known_words": added.without_code,
        "documents": len(collection),
    }
