"""Routes that get, add, replace, delete, upload and download documents."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import ValidationError
from starlette.responses import StreamingResponse

from snuh.collection import Added, Collection
from snuh.collection.query import document_to_json
from snuh.corpus import Document
from snuh.corpus.document import to_fields
from snuh.errors import InputError, SnuhError
from snuh.server.errors import (
    ApiError,
    check_response_size,
    from_library_error,
    from_validation_error,
    invalid,
    json_bytes,
    too_large,
)
from snuh.server.requests import (
    NDJSON_TYPE,
    body_chunks,
    body_timeout,
    check_content_type,
    check_exactly_one,
    get_limits,
    get_service,
    get_writable_service,
    json_response,
    read_body,
)
from snuh.server.schemas import (
    MAX_FETCHED,
    MAX_FILTER_CHARACTERS,
    MAX_ID_CHARACTERS,
    WITH_BODY,
    AddRequest,
    AddResponse,
    DeleteRequest,
    DeleteResponse,
    DocumentsResponse,
    NewDocument,
    other_content,
    request_body,
    responses,
)
from snuh.server.service import Json
from snuh.text import quote

BATCH_DOCUMENTS, BATCH_BYTES = 1_000, 4 << 20  # of an upload, written in one transaction
MIN_RECEIVED_BYTES = 64 << 10  # of a line, or the rest of it, per timeout
CHUNK_BYTES = 256 << 10  # of a download
NDJSON_BODY = {"requestBody": {"required": True, "content": {NDJSON_TYPE: {"schema": {"type": "string"}}}}}

Ids = Annotated[
    list[Annotated[str, Query(max_length=MAX_ID_CHARACTERS)]],
    Query(min_length=1, max_length=MAX_FETCHED, description="Repeated for each document."),
]

router = APIRouter(prefix="/v1/collections/{name}", tags=["documents"])


@router.get("/documents", summary="Get documents by id", responses=responses(DocumentsResponse))
async def get(request: Request, name: str, id: Ids) -> Response:
    """All of them, or 404 if one does not exist."""
    max_bytes = get_limits(request).response_bytes

    def task(collection: Collection) -> Json:
        documents, length = [], 0
        for doc_id in id:
            documents.append(document_to_json(collection.get(doc_id)))
            length += len(documents[-1]["text"])
            check_response_size(length, max_bytes)
        return {"documents": documents}

    return json_response(request, await get_service(request, name).reader.run(task))


@router.post(
    "/documents",
    summary="Add or replace documents",
    responses=responses(AddResponse, errors=WITH_BODY),
    openapi_extra=request_body(AddRequest),
)
async def add(request: Request, name: str) -> Response:
    """All of them or none; they are on disk when the response is sent."""
    service = get_writable_service(request, name)
    body = await read_body(request, AddRequest)
    records = [document.record for document in body.documents]

    def task(collection: Collection) -> Json:
        return added_to_json(collection.add(records), collection)

    result = await service.writer.run(task)
    request.app.state.metrics.count_written(name, result["inserted"] + result["replaced"])
    return json_response(request, result)


@router.post(
    "/documents/delete",
    summary="Delete documents by id or by filter",
    responses=responses(DeleteResponse, errors=WITH_BODY),
    openapi_extra=request_body(DeleteRequest),
)
async def delete(request: Request, name: str) -> Response:
    """All of them or none; 404 if an id does not exist."""
    service = get_writable_service(request, name)
    body = await read_body(request, DeleteRequest)
    check_exactly_one(body, "ids", "where")

    def task(collection: Collection) -> Json:
        if body.where is not None:
            deleted = collection.delete_where(body.where)
        else:
            deleted = collection.delete(body.ids or ())
        return {"deleted": deleted, "documents": len(collection)}

    result = await service.writer.run(task)
    request.app.state.metrics.count_written(name, result["deleted"])
    return json_response(request, result)


@router.post(
    "/documents/lines",
    summary="Upload documents as JSON lines",
    responses=responses(AddResponse, errors=WITH_BODY),
    openapi_extra=NDJSON_BODY,
)
async def upload(request: Request, name: str) -> Response:
    """Written in batches; an error names the invalid line and the number of documents stored before it."""
    service = get_writable_service(request, name)
    check_content_type(request, NDJSON_TYPE)
    total = Added(0, 0, 0)
    try:
        async for batch in _document_batches(request):
            total = total + await service.writer.run(_adder(batch))
    except SnuhError as error:
        folders = request.app.state.settings.folders
        raise _with_stored_count(from_library_error(error, folders), total) from error
    except ApiError as error:
        raise _with_stored_count(error, total) from error
    finally:
        request.app.state.metrics.count_written(name, total.inserted + total.replaced)
    result = await service.reader.run(lambda collection: added_to_json(total, collection))
    return json_response(request, result)


@router.get(
    "/documents/lines",
    summary="Download documents as JSON lines",
    response_class=Response,
    responses=responses(None) | other_content(NDJSON_TYPE),
)
async def download(
    request: Request,
    name: str,
    where: Annotated[str | None, Query(max_length=MAX_FILTER_CHARACTERS)] = None,
) -> Response:
    """In insertion order; documents added during the download are not included."""
    reader = get_service(request, name).reader
    documents = await reader.run(lambda collection: collection.documents(where=where))
    first = await reader.run(lambda _: _next_lines(documents))  # reports an invalid filter before the 200

    async def chunks() -> AsyncIterator[bytes]:
        chunk = first
        while chunk:
            yield chunk
            chunk = await reader.run(lambda _: _next_lines(documents))

    return StreamingResponse(chunks(), media_type=NDJSON_TYPE)


def added_to_json(added: Added, collection: Collection) -> Json:
    """Return the result of an add as JSON values, with the size of the collection."""
    return {
        "inserted": added.inserted,
        "replaced": added.replaced,
        "without_known_words": added.without_code,
        "documents": len(collection),
    }


def _next_lines(documents: Iterator[Document]) -> bytes:
    """Return the next lines of a download, about CHUNK_BYTES of them."""
    chunk = bytearray()
    for document in documents:
        chunk += json_bytes(_document_to_record(document)) + b"\n"
        if len(chunk) >= CHUNK_BYTES:
            break
    return bytes(chunk)


def _document_to_record(document: Document) -> Json:
    """Return a document in the format of an upload, with the metadata at the top level."""
    fields = document_to_json(document)
    metadata = fields.pop("metadata")
    if reserved := sorted(fields.keys() & metadata.keys()):
        raise InputError(f"the document {quote(document.id)} has metadata called {quote(reserved[0])}")
    return {**fields, **to_fields(metadata)}


def _adder(batch: list[Json]) -> Callable[[Collection], Added]:
    return lambda collection: collection.add(batch)


async def _document_batches(request: Request) -> AsyncIterator[list[Json]]:
    batch: list[Json] = []
    size = 0
    async for number, line in _read_lines(request):
        batch.append(_parse_line(number, line))
        size += len(line)
        if len(batch) >= BATCH_DOCUMENTS or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _parse_line(number: int, line: bytes) -> Json:
    try:
        return NewDocument.model_validate_json(line).record
    except ValidationError as error:
        reason = str(from_validation_error(error.errors(include_url=False)[0]))
        raise invalid(f"line {number}: {reason.replace('the body', 'it')}") from None


async def _read_lines(request: Request) -> AsyncIterator[tuple[int, bytes]]:
    """Yield the non-empty lines of the body with their numbers, starting at 1."""
    limits = get_limits(request)
    incomplete, number, received = bytearray(), 0, 0
    chunks = body_chunks(request)
    clock = asyncio.get_running_loop().time
    deadline = clock() + limits.timeout_seconds
    while True:
        try:
            async with body_timeout(deadline - clock()):
                chunk = await anext(chunks)
        except StopAsyncIteration:
            break
        first, *others = chunk.split(b"\n")
        received += len(chunk)
        incomplete += first
        for start in others:
            number += 1
            if incomplete.strip():
                yield number, bytes(incomplete)
            incomplete = bytearray(start)
        if others or received >= MIN_RECEIVED_BYTES:  # a byte at a time does not keep a connection open
            deadline, received = clock() + limits.timeout_seconds, 0
        if len(incomplete) > limits.body_bytes:
            raise too_large(f"line {number + 1} exceeds the limit of {limits.body_bytes:,} bytes")
    if incomplete.strip():
        yield number + 1, bytes(incomplete)


def _with_stored_count(error: ApiError, total: Added) -> ApiError:
    stored = total.inserted + total.replaced
    message = f"{error}; {stored:,} documents before it were stored"
    return ApiError(error.status, error.kind, message, **error.details)
