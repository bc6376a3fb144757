"""Documents: get, add or replace, delete."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import ValidationError
from starlette.responses import StreamingResponse

from snuh.collection import Added, Collection
from snuh.collection.results import document_to_json
from snuh.corpus import Document
from snuh.corpus.document import quote
from snuh.errors import InputError, SnuhError
from snuh.server.errors import Refusal, check_length, json_bytes, of_details, of_error, too_large
from snuh.server.requests import (
    LINES_TYPE,
    answer,
    body_parts,
    check_one_of,
    check_type,
    in_time,
    limits,
    read_ask,
    served,
    served_for_writing,
)
from snuh.server.routes.openapi import WITH_BODY, answers, body_of, other_content
from snuh.server.schemas import (
    FILTER_CHARACTERS,
    ID_CHARACTERS,
    MAX_FETCHED,
    AddAnswer,
    AddAsk,
    DeleteAnswer,
    DeleteAsk,
    DocumentsAnswer,
    NewDocument,
)
from snuh.server.service import Json, Served

router = APIRouter(prefix="/v1/collections/{name}", tags=["documents"])

Ids = Annotated[
    list[Annotated[str, Query(max_length=ID_CHARACTERS)]],
    Query(min_length=1, max_length=MAX_FETCHED, description="Once for each document."),
]


@router.get("/documents", summary="Get documents by their ids", responses=answers(DocumentsAnswer))
async def get(request: Request, name: str, id: Ids) -> Response:
    """All of them, or 404 where one is unknown."""
    max_bytes = limits(request).answer_bytes

    def work(collection: Collection) -> Json:
        documents, length = [], 0
        for doc_id in id:
            documents.append(document_to_json(collection.get(doc_id)))
            length += len(documents[-1]["text"])
            check_length(length, max_bytes)
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


def added_to_json(added: Added, collection: Collection) -> Json:
    """Return what happened, and how many documents there are now."""
    return {
        "inserted": added.inserted,
        "replaced": added.replaced,
        "without_known_words": added.without_code,
        "documents": len(collection),
    }


# Documents as JSON lines, of any number: stored while they come, read while they go.


BATCH_DOCUMENTS, BATCH_BYTES = 1_000, 4 << 20
PIECE_BYTES = 256 << 10
LINES_SCHEMA = {"requestBody": {"required": True, "content": {LINES_TYPE: {"schema": {"type": "string"}}}}}


@router.post(
    "/documents/lines",
    summary="Add or replace documents from JSON lines",
    responses=answers(AddAnswer, others=WITH_BODY),
    openapi_extra=LINES_SCHEMA,
)
async def upload(request: Request, name: str) -> Response:
    """Written in batches; where a line is wrong, the answer says which, and how many were stored before."""
    collection = served_for_writing(request, name)
    check_type(request, LINES_TYPE)
    total = Added(0, 0, 0)
    try:
        async for batch in _batches(request):
            total = total + await _store(collection, batch)
    except SnuhError as error:
        folders = request.app.state.settings.folders
        raise _with_count(of_error(error, folders), total) from error
    except Refusal as refusal:
        raise _with_count(refusal, total) from refusal
    finally:
        request.app.state.metrics.count_written(name, total.inserted + total.replaced)
    return answer(request, await collection.reading.run(lambda opened: added_to_json(total, opened)))


@router.get(
    "/documents/lines",
    summary="Get all documents as JSON lines",
    response_class=Response,
    responses=answers(None) | other_content(LINES_TYPE),
)
async def download(
    request: Request,
    name: str,
    where: Annotated[str | None, Query(max_length=FILTER_CHARACTERS)] = None,
) -> Response:
    """In the order in which they were added; those that come meanwhile are left out."""
    collection = served(request, name)
    documents = await collection.reading.run(lambda opened: opened.documents(where=where))
    first = await collection.reading.run(lambda _: _piece(documents))  # a bad filter is refused before 200

    async def pieces() -> AsyncIterator[bytes]:
        piece = first
        while piece:
            yield piece
            piece = await collection.reading.run(lambda _: _piece(documents))

    return StreamingResponse(pieces(), media_type=LINES_TYPE)


def _piece(documents: Iterator[Document]) -> bytes:
    piece = bytearray()
    for document in documents:
        piece += json_bytes(_record(document)) + b"\n"
        if len(piece) >= PIECE_BYTES:
            break
    return bytes(piece)


def _record(document: Document) -> Json:
    """Return a document as a line that an upload takes again."""
    fields = document_to_json(document)
    metadata = fields.pop("metadata")
    if taken := sorted(fields.keys() & metadata.keys()):
        raise InputError(f"the document {quote(document.id)} has metadata called {quote(taken[0])}")
    return {**fields, **metadata}


async def _store(collection: Served, batch: list[Json]) -> Added:
    return await collection.writing.run(lambda opened: opened.add(batch))


async def _batches(request: Request) -> AsyncIterator[list[Json]]:
    batch: list[Json] = []
    size = 0
    async for number, line in _lines(request):
        batch.append(_read_line(number, line))
        size += len(line)
        if len(batch) >= BATCH_DOCUMENTS or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _read_line(number: int, line: bytes) -> Json:
    try:
        return NewDocument.model_validate_json(line).record
    except ValidationError as error:
        refusal = of_details(error.errors(include_url=False)[0])
        raise Refusal(400, "invalid", f"line {number}: {str(refusal).replace('the body', 'it')}") from None


async def _lines(request: Request) -> AsyncIterator[tuple[int, bytes]]:
    """Yield the lines with something on them, and their numbers."""
    limit, seconds = limits(request).body_bytes, limits(request).seconds
    rest, number = bytearray(), 0
    parts = body_parts(request)
    while True:
        try:
            async with in_time(seconds):
                part = await anext(parts)
        except StopAsyncIteration:
            break
        start, *others = part.split(b"\n")
        rest += start
        for beginning in others:
            number += 1
            if rest.strip():
                yield number, bytes(rest)
            rest = bytearray(beginning)
        if len(rest) > limit:
            raise too_large(f"line {number + 1} has more than the {limit:,} bytes that are allowed")
    if rest.strip():
        yield number + 1, bytes(rest)


def _with_count(refusal: Refusal, total: Added) -> Refusal:
    done = total.inserted + total.replaced
    return Refusal(
        refusal.status, refusal.kind, f"{refusal}; {done:,} documents before it were stored", **refusal.more
    )
