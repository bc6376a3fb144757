"""Documents as JSON lines, of any number: stored while they come, read while they go."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import ValidationError
from starlette.responses import StreamingResponse

from snuh.collection import Added
from snuh.corpus import Document
from snuh.corpus.record import quote
from snuh.errors import InputError, SnuhError
from snuh.server.answers import AddAnswer
from snuh.server.asking import (
    LINES_TYPE,
    answer,
    body_parts,
    check_type,
    in_time,
    limits,
    served,
    served_for_writing,
)
from snuh.server.asks import FILTER_CHARACTERS, NewDocument
from snuh.server.hits import Json
from snuh.server.refusals import Refusal, of_details, of_error, too_large
from snuh.server.routes.describing import WITH_BODY, answers, other_content
from snuh.server.routes.documents import added_to_json, document_to_json
from snuh.server.served import Served
from snuh.server.writing import json_bytes

router = APIRouter(prefix="/v1/collections/{name}", tags=["documents"])

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
    most, seconds = limits(request).body_bytes, limits(request).seconds
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
        if len(rest) > most:
            raise too_large(f"line {number + 1} has more than the {most:,} bytes that are allowed")
    if rest.strip():
        yield number + 1, bytes(rest)


def _with_count(refusal: Refusal, total: Added) -> Refusal:
    done = total.inserted + total.replaced
    return Refusal(
        refusal.status, refusal.kind, f"{refusal}; {done:,} documents before it were stored", **refusal.more
    )
