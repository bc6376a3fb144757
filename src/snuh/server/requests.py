"""Reading requests within their limits, and building JSON responses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from snuh.errors import suggest
from snuh.server.errors import (
    ApiError,
    check_response_size,
    from_validation_error,
    invalid,
    json_bytes,
    too_large,
)
from snuh.server.service import CollectionService
from snuh.server.settings import Limits, Settings
from snuh.text import quote

Schema = TypeVar("Schema", bound=BaseModel)

JSON_TYPE, NDJSON_TYPE = "application/json", "application/x-ndjson"


def get_services(request: Request) -> dict[str, CollectionService]:
    """Return all collections of the server, by name."""
    services: dict[str, CollectionService] = request.app.state.services
    return services


def get_service(request: Request, name: str) -> CollectionService:
    """Return a collection by name, or raise a 404 error."""
    services = get_services(request)
    if name not in services:
        raise ApiError(404, "not-found", f"there is no collection {quote(name)}{suggest(name, services)}")
    return services[name]


def get_writable_service(request: Request, name: str) -> CollectionService:
    """Return a collection by name, or raise a 403 error if the request may only read."""
    if not request.state.may_write:
        raise ApiError(403, "forbidden", "read-only access: send a token with the right to write")
    return get_service(request, name)


def get_limits(request: Request) -> Limits:
    """Return the server's limits."""
    settings: Settings = request.app.state.settings
    return settings.limits


async def read_body(request: Request, schema: type[Schema]) -> Schema:
    """Read a JSON body and validate it against a schema."""
    check_content_type(request, JSON_TYPE)
    body = await _read_bytes(request, get_limits(request))
    try:
        return schema.model_validate_json(body)
    except ValidationError as error:
        raise from_validation_error(error.errors(include_url=False)[0]) from None


def check_exactly_one(body: BaseModel, first: str, second: str) -> None:
    """Raise a 400 error unless exactly one of two fields is present."""
    has_first, has_second = getattr(body, first) is not None, getattr(body, second) is not None
    if has_first == has_second:
        raise invalid(f'expected "{first}" or "{second}", got {"both" if has_first else "neither"}')


def check_content_type(request: Request, expected: str) -> None:
    """Raise a 415 error for another Content-Type.

    A page of another site can send a form without a preflight request, but not with this content type.
    """
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != expected:
        raise ApiError(415, "type", f'expected "Content-Type: {expected}", got {quote(content_type)}')


async def _read_bytes(request: Request, limits: Limits) -> bytes:
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > limits.body_bytes:
        raise too_large(f"the body has {int(length):,} bytes, the limit is {limits.body_bytes:,}")
    chunks: list[bytes] = []
    size, has_more = 0, True
    async with body_timeout(limits.timeout_seconds):
        while has_more:
            chunk, has_more = await _next_chunk(request)
            chunks.append(chunk)
            size += len(chunk)
            if size > limits.body_bytes:
                raise too_large(f"the body exceeds the limit of {limits.body_bytes:,} bytes")
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


async def body_chunks(request: Request) -> AsyncIterator[bytes]:
    """Yield the body in chunks as they arrive."""
    has_more = True
    while has_more:
        chunk, has_more = await _next_chunk(request)
        yield chunk


async def _next_chunk(request: Request) -> tuple[bytes, bool]:
    """Return the next chunk of the body, and whether more follow."""
    message = await request.receive()
    if message["type"] == "http.disconnect":
        raise ClientDisconnect
    return message.get("body", b""), message.get("more_body", False)


@asynccontextmanager
async def body_timeout(seconds: float) -> AsyncIterator[None]:
    """Raise a 408 error if the block takes longer than this."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise ApiError(408, "timeout", f"the body did not arrive within {seconds:g} seconds") from None


def json_response(request: Request, value: Any, *, status: int = 200) -> Response:  # Any: JSON values
    """Return a JSON response."""
    return raw_json_response(request, json_bytes(value), status=status)


def raw_json_response(request: Request, body: bytes, *, status: int = 200) -> Response:
    """Return a response whose body is JSON already, or raise a 413 error if it is too large."""
    check_response_size(len(body), get_limits(request).response_bytes)
    return Response(body, status_code=status, media_type=JSON_TYPE)
