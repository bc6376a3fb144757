"""Routes that list, get, add, replace, update, delete, upload and download documents."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import ValidationError
from starlette.responses import StreamingResponse

from snuh.collection import Added, Collection
from snuh.collection.query import document_to_json
from snuh.corpus import Document
from snuh.corpus.document import to_fields
from snuh.errors import InputError, SnuhError
from snuh.server.requests import (
    NDJSON_TYPE,
    ApiError,
    LimitedRoute,
    body_chunks,
    body_timeout,
    check_content_type,
    check_exactly_one,
    check_response_size,
    from_library_error,
    from_validation_error,
    get_limits,
    invalid,
    json_bytes,
    json_response,
    too_large,
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
    DocumentChanges,
    DocumentContent,
    DocumentResponse,
    DocumentsResponse,
    NewDocument,
    errors,
    other_content,
)
from snuh.server.service import CollectionService, Json, Service, WritableService
from snuh.text import quote

BATCH_DOCUMENTS, BATCH_BYTES = 1_000, 4 << 20  # of an upload, written in one transaction
MIN_RECEIVED_BYTES = 64 << 10  # of a line, or the rest of it, per timeout
CHUNK_BYTES = 256 << 10  # of a download
NDJSON_BODY = {"requestBody": {"required": True, "content": {NDJSON_TYPE: {"schema": {"type": "string"}}}}}

Ids = Annotated[
    list[Annotated[str, Query(max_length=MAX_ID_CHARACTERS)]] | None,
    Query(min_length=1, max_length=MAX_FETCHED, description="Get these documents; repeated for each."),
]
Where = Annotated[
    str | None, Query(max_length=MAX_FILTER_CHARACTERS, description="A filter, such as `year >= 2020`.")
]
DocId = Annotated[
    str, Path(min_length=1, max_length=MAX_ID_CHARACTERS, description="The id, which may contain slashes.")
]

router = APIRouter(
    prefix="/v1/collections/{name}/documents",
    tags=["documents"],
    route_class=LimitedRoute,
    responses=errors(*WITH_BODY),
)


@router.get("", summary="List documents, or get some by id", response_model=DocumentsResponse)
async def list_documents(
    request: Request,
    service: Service,
    id: Ids = None,
    limit: Annotated[int, Query(ge=1, le=MAX_FETCHED, description="Maximum number of documents.")] = 20,
    after: Annotated[
        str | None, Query(max_length=20, pattern="^[0-9]+$", description="`next` of the page before.")
    ] = None,
    where: Where = None,
) -> Response:
    """A page of the documents in insertion order; or those with the given ids, 404 if one does not exist."""
    max_bytes = get_limits(request).response_bytes

    def get(collection: Collection) -> Json:
        documents, length = [], 0
        for doc_id in id or ():
            documents.append(document_to_json(collection.get(doc_id)))
            length += len(documents[-1]["text"])
            check_response_size(length, max_bytes)
        return {"documents": documents, "next": None}

    def list_page(collection: Collection) -> Json:
        page = collection.page(after=after, limit=limit, where=where)
        check_response_size(sum(len(document.text) for document in page.documents), max_bytes)
        return {"documents": [document_to_json(one) for one in page.documents], "next": page.next}

    return json_response(request, await service.reader.run(list_page if id is None else get))


@router.post("", summary="Add or replace documents")
async def add_documents(request: Request, service: WritableService, body: AddRequest) -> AddResponse:
    """All of them or none; they are on disk when the response is sent."""
    repeated = [doc_id for doc_id, n in Counter(one.id for one in body.documents).items() if n > 1]
    if repeated:
        raise invalid(f"the id {quote(repeated[0])} is given more than once: send each document once")
    return await _add(request, service, [document.record for document in body.documents])


@router.post("/delete", summary="Delete documents by id or by filter")
async def delete_documents(request: Request, service: WritableService, body: DeleteRequest) -> DeleteResponse:
    """All of them or none; 404 if an id does not exist. An id that is given twice counts once."""
    check_exactly_one(body, "ids", "where")

    def task(collection: Collection) -> DeleteResponse:
        if body.where is not None:
            deleted = collection.delete_where(body.where)
        else:
            deleted = collection.delete(body.ids or ())
        return DeleteResponse(deleted=deleted, documents=len(collection))

    result = await service.writer.run(task)
    request.app.state.metrics.count_written(service.name, result.deleted)
    return result


@router.post("/lines", summary="Upload documents as JSON lines", openapi_extra=NDJSON_BODY)
async def upload_documents(request: Request, service: WritableService) -> AddResponse:
    """Written in batches; an error names the invalid line and the number of documents stored before it.

    If an id occurs more than once, the last document replaces the others.
    """
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
        request.app.state.metrics.count_written(service.name, total.inserted + total.replaced)
    return await service.reader.run(lambda collection: to_response(total, collection))


@router.get(
    "/lines",
    summary="Download documents as JSON lines",
    response_class=Response,
    responses=other_content(NDJSON_TYPE),
)
async def download_documents(service: Service, where: Where = None) -> Response:
    """In insertion order; documents added during the download are not included."""
    reader = service.reader
    documents = await reader.run(lambda collection: collection.documents(where=where))
    first = await reader.run(lambda _: _next_lines(documents))  # reports an invalid filter before the 200

    async def chunks() -> AsyncIterator[bytes]:
        chunk = first
        while chunk:
            yield chunk
            chunk = await reader.run(lambda _: _next_lines(documents))

    return StreamingResponse(chunks(), media_type=NDJSON_TYPE)


# One document. Ids may contain slashes, so these routes come last.


@router.get("/{id:path}", summary="Get a document", response_model=DocumentResponse)
async def get_document(request: Request, service: Service, id: DocId) -> Response:
    """404 if it does not exist."""
    document = await service.reader.run(lambda collection: collection.get(id))
    return json_response(request, document_to_json(document))


@router.put("/{id:path}", summary="Add or replace a document")
async def put_document(
    request: Request, service: WritableService, id: DocId, body: DocumentContent
) -> AddResponse:
    """It is on disk when the response is sent."""
    if body.record.get("id", id) != id:
        raise invalid(f'the path has the id {quote(id)}, the body another one: omit "id"')
    return await _add(request, service, [{**body.record, "id": id}])


@router.patch("/{id:path}", summary="Change fields of a document", response_model=DocumentResponse)
async def update_document(
    request: Request, service: WritableService, id: DocId, body: DocumentChanges
) -> Response:
    """Fields that are not given stay as they are; null removes a field. Returns the new document."""
    changes: dict[str, Any] = body.record
    document = await service.writer.run(lambda collection: collection.update(id, changes))
    request.app.state.metrics.count_written(service.name, 1)
    return json_response(request, document_to_json(document))


@router.delete("/{id:path}", summary="Delete a document")
async def delete_document(request: Request, service: WritableService, id: DocId) -> DeleteResponse:
    """404 if it does not exist."""

    def task(collection: Collection) -> DeleteResponse:
        return DeleteResponse(deleted=collection.delete([id]), documents=len(collection))

    result = await service.writer.run(task)
    request.app.state.metrics.count_written(service.name, 1)
    return result


async def _add(request: Request, service: CollectionService, records: list[Json]) -> AddResponse:
    result = await service.writer.run(lambda collection: to_response(collection.add(records), collection))
    request.app.state.metrics.count_written(service.name, result.inserted + result.replaced)
    return result


def to_response(added: Added, collection: Collection) -> AddResponse:
    """Return the result of an add, with the size of the collection."""
    return AddResponse(
        inserted=added.inserted,
        replaced=added.replaced,
        without_known_words=added.without_code,
        documents=len(collection),
    )


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
    return ApiError(error.status_code, error.kind, message, headers=error.headers, **error.details)
