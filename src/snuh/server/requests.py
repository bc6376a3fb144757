"""Requests and responses of the API: bodies within their limits, JSON, and errors.

An error has an HTTP status, a machine-readable kind and a message of one sentence, and is sent as JSON.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any

from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic_core import ErrorDetails, PydanticSerializationError, to_json
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from snuh.corpus.document import describe
from snuh.errors import CollectionError, ModelError, SnuhError, UnknownDocumentError
from snuh.filters import FilterError
from snuh.io import redact
from snuh.server.settings import Limits, Settings
from snuh.text import quote, shorten

JSON_TYPE, NDJSON_TYPE = "application/json", "application/x-ndjson"
MAX_INPUT_CHARACTERS = 60  # of an invalid number quoted in a message


class ApiError(HTTPException):
    """An error response; routes and middleware raise it."""

    def __init__(
        self,
        status: int,
        kind: str,
        message: str,
        *,
        headers: Mapping[str, str] | None = None,
        **details: Any,  # JSON values
    ) -> None:
        super().__init__(status, message, headers)
        self.kind, self.details = kind, details

    def __str__(self) -> str:
        return str(self.detail)

    def response(self) -> Response:
        """Return the HTTP response."""
        body = error_body(self.kind, str(self), **self.details)
        return Response(body, self.status_code, self.headers, media_type="application/json")


def json_bytes(value: Any) -> bytes:  # Any: JSON values and tuples
    """Serialize a value to JSON; infinity and NaN become null."""
    try:
        return to_json(value, inf_nan_mode="null")
    except PydanticSerializationError:  # metadata may be nested deeper than pydantic's limit
        return json.dumps(value, allow_nan=False).encode()


def error_body(kind: str, message: str, **details: Any) -> bytes:  # Any: JSON values
    """Return the JSON body of an error, with the message on one line."""
    return json_bytes({"error": " ".join(message.split()), "kind": kind, **details})


def invalid(message: str) -> ApiError:
    """Return a 400 error for an invalid request."""
    return ApiError(400, "invalid", message)


def too_large(message: str) -> ApiError:
    """Return a 413 error for a request or response above its size limit."""
    return ApiError(413, "too-large", message)


def unavailable(message: str) -> ApiError:
    """Return a 503 error for a request that may succeed later."""
    return ApiError(503, "unavailable", message)


def check_response_size(size: int, limit: int) -> None:
    """Raise a 413 error if a response would exceed the limit."""
    if size > limit:
        raise too_large(f"the response would exceed {limit:,} bytes: request less")


def from_library_error(error: SnuhError, folders: Mapping[str, str]) -> ApiError:
    """Convert a library error; folders and URLs in its message are replaced by the collections' names."""
    message = str(error)
    for name, folder in folders.items():
        message = message.replace(redact(folder), name)
    if isinstance(error, FilterError):
        return ApiError(400, "filter", message, position=error.position)
    if isinstance(error, UnknownDocumentError):
        return ApiError(404, "not-found", message, resource="document")
    if isinstance(error, CollectionError | ModelError):
        return unavailable(message)
    return invalid(message)


def from_validation_error(details: ErrorDetails) -> ApiError:
    """Convert one of pydantic's errors about a body or a query parameter."""
    field = ".".join(str(part) for part in details["loc"])
    problem = details["msg"].removeprefix("Value error, ")
    if details["type"] == "json_invalid":
        reason = details.get("ctx", {}).get("error", details["msg"])
        return invalid(f"the body is not valid JSON: {reason}" + (f" at character {field}" if field else ""))
    if details["type"] == "missing" and not field:
        return invalid("the body is missing")
    if details["type"] == "extra_forbidden":
        return invalid(f"unknown field {quote(field)}: remove it")
    if details["type"] == "missing":
        return invalid(f"the field {quote(field)} is missing")
    problem = problem[:1].lower() + problem[1:]
    if not field:
        return invalid(problem)
    return invalid(f"{quote(field)}: {problem}, got {_format_input(details.get('input'))}")


def _format_input(value: object) -> str:
    if isinstance(value, bool | int | float) or value is None:
        text = str(value).lower() if isinstance(value, bool) or value is None else repr(value)
        return shorten(text)
    return quote(value) if isinstance(value, str) else describe(value)


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
