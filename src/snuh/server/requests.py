"""From a request to what it asks for, within its limits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from snuh.corpus.document import quote
from snuh.errors import suggest
from snuh.server.errors import Refusal, check_length, invalid, json_bytes, of_details, too_large
from snuh.server.service import Served
from snuh.server.settings import Limits, Settings

Asked = TypeVar("Asked", bound=BaseModel)

JSON_TYPE, LINES_TYPE = "application/json", "application/x-ndjson"


class GoneError(Exception):
    """Whoever asked has gone before the request was whole."""


def served(request: Request, name: str) -> Served:
    """Return a collection by its name."""
    every: dict[str, Served] = request.app.state.served
    if name not in every:
        raise Refusal(404, "not-found", f"there is no collection {quote(name)}{suggest(name, every)}")
    return every[name]


def served_for_writing(request: Request, name: str) -> Served:
    """Return a collection; 403 where whoever asks may only read."""
    if not request.state.may_write:
        raise Refusal(403, "forbidden", "only reading is allowed: send a token that may write")
    return served(request, name)


def limits(request: Request) -> Limits:
    """Return the server's limits."""
    settings: Settings = request.app.state.settings
    return settings.limits


async def read_ask(request: Request, kind: type[Asked]) -> Asked:
    """Read the body as JSON of a kind."""
    check_type(request, JSON_TYPE)
    body = await _read_body(request, limits(request))
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        raise of_details(error.errors(include_url=False)[0]) from None


def check_one_of(ask: BaseModel, first: str, second: str) -> None:
    """Refuse what has both fields, or neither."""
    has_first, has_second = getattr(ask, first) is not None, getattr(ask, second) is not None
    if has_first == has_second:
        raise invalid(f'expected "{first}" or "{second}", got {"both" if has_first else "neither"}')


def check_type(request: Request, wanted: str) -> None:
    """Refuse a body that does not say what it is; pages of other sites cannot say so unasked."""
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given != wanted:
        raise Refusal(415, "type", f'expected a body with "Content-Type: {wanted}", got {quote(given)}')


async def _read_body(request: Request, limits: Limits) -> bytes:
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > limits.body_bytes:
        raise too_large(f"the body has {int(length):,} bytes, the limit is {limits.body_bytes:,}")
    parts: list[bytes] = []
    size, has_more = 0, True
    async with in_time(limits.seconds):
        while has_more:
            part, has_more = await _next_part(request)
            parts.append(part)
            size += len(part)
            if size > limits.body_bytes:
                raise too_large(f"the body has more than the {limits.body_bytes:,} bytes that are allowed")
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def body_parts(request: Request) -> AsyncIterator[bytes]:
    """Yield the body as it comes."""
    has_more = True
    while has_more:
        part, has_more = await _next_part(request)
        yield part


async def _next_part(request: Request) -> tuple[bytes, bool]:
    """Return the next part of the body, and whether there are more."""
    message = await request.receive()
    if message["type"] == "http.disconnect":
        raise GoneError
    return message.get("body", b""), message.get("more_body", False)


@asynccontextmanager
async def in_time(seconds: float) -> AsyncIterator[None]:
    """Refuse what takes too long to come."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise Refusal(408, "slow", f"the body did not come within {seconds:g} seconds") from None


def answer(request: Request, value: Any, *, status: int = 200) -> Response:  # Any: whatever JSON can say
    """Return an answer of JSON."""
    return raw_answer(request, json_bytes(value), status=status)


def raw_answer(request: Request, body: bytes, *, status: int = 200) -> Response:
    """Return an answer that is JSON already; 413 where it is too long."""
    check_length(len(body), limits(request).answer_bytes)
    return Response(body, status_code=status, media_type=JSON_TYPE)
