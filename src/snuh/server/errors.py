"""Errors of the API: an HTTP status, a machine-readable kind and a one-sentence message, sent as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic_core import ErrorDetails, PydanticSerializationError, to_json
from starlette.exceptions import HTTPException
from starlette.responses import Response

from snuh.corpus.document import describe
from snuh.errors import CollectionError, ModelError, SnuhError, UnknownDocumentError
from snuh.filters import FilterError
from snuh.io import redact
from snuh.text import quote, shorten

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
        raise too_large(f"the response would exceed {limit:,} bytes: request less at once")


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
