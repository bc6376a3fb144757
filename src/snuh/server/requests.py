"""What the routes share: reading bodies within their limits, dependencies, and JSON responses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import Depends, Path
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from snuh.errors import suggest
from snuh.server.errors import ApiError, check_response_size, invalid, json_bytes, too_large
from snuh.server.service import CollectionService
from snuh.server.settings import Limits, Settings
from snuh.text import quote

JSON_TYPE, NDJSON_TYPE = "application/json", "application/x-ndjson"


class LimitedRequest(Request):
    """A request whose JSON body is checked and read within the limits of the server."""

    async def body(self) -> bytes:
        """Read the body; 415 for other types, 413 for large ones, 408 for slow ones."""
        if not hasattr(self, "_body"):
            check_content_type(self, JSON_TYPE)
            self._body = await _read_bytes(self, get_limits(self))
        return self._body

    async def json(self) -> Any:
        """Parse the body; a JSONDecodeError is reported by FastAPI."""
        try:
            return json.loads(await self.body())
        except (UnicodeDecodeError, RecursionError) as error:
            raise invalid("the body is not valid JSON in UTF-8") from error


class LimitedRoute(APIRoute):
    """A route that reads its body as a LimitedRequest."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return FastAPI's handler, which gets a LimitedRequest."""
        handle = super().get_route_handler()

        async def handle_limited(request: Request) -> Response:
            return await handle(LimitedRequest(request.scope, request.receive))

        return handle_limited


def get_services(request: Request) -> dict[str, CollectionService]:
    """Return all collections of the server, by name."""
    services: dict[str, CollectionService] = request.app.state.services
    return services


Name = Annotated[str, Path(description="The name of a collection.")]


async def get_service(request: Request, name: Name) -> CollectionService:
    """Return a collection by name, or raise a 404 error."""
    services = get_services(request)
    if name not in services:
        raise ApiError(404, "not-found", f"there is no collection {quote(name)}{suggest(name, services)}")
    return services[name]


Service = Annotated[CollectionService, Depends(get_service)]


async def get_writable_service(request: Request, service: Service) -> CollectionService:
    """Return a collection by name, or raise a 403 error if the request may only read."""
    if not request.state.may_write:
        raise ApiError(403, "forbidden", "read-only access: send a token with the right to write")
    return service


WritableService = Annotated[CollectionService, Depends(get_writable_service)]


def get_limits(request: Request) -> Limits:
    """Return the server's limits."""
    settings: Settings = request.app.state.settings
    return settings.limits


def check_exactly_one(body: BaseModel, first: str, second: str) -> None:
    """Raise a 400 error unless exactly one of two fields is present."""
    has_first, has_second = getattr(body, first) is not None, getattr(body, second) is not None
    if has_first == has_second:
        raise invalid(f'expected "{first}" or "{second}", got {"both" if has_first else "neither"}')


def check_content_type(request: Request, expected: str) -> None:
    """Raise a 415 error for another Content-Type, or for a compressed body.

    A page of another site can send a form without a preflight request, but not with this content type.
    """
    content_type, _, parameters = request.headers.get("content-type", "").partition(";")
    if content_type.strip().lower() != expected:
        raise ApiError(415, "type", f'expected "Content-Type: {expected}", got {quote(content_type.strip())}')
    charset = parameters.partition("charset=")[2].partition(";")[0].strip(' "').lower()
    if charset not in ("", "utf-8", "utf8"):
        raise ApiError(415, "type", f"expected a body in UTF-8, got {quote(charset)}")
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding != "identity":
        message = f"expected an uncompressed body, got Content-Encoding {quote(encoding)}"
        raise ApiError(415, "type", message, headers={"accept-encoding": "identity"})


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
