"""Descriptions of requests and responses for the OpenAPI schema."""

from __future__ import annotations

from typing import Any, TypeAlias

from pydantic import BaseModel

from snuh.server.schemas import ErrorResponse

Responses: TypeAlias = dict[int | str, dict[str, Any]]  # as FastAPI takes them

ERRORS = {
    400: "The request is invalid.",
    401: "A token is required.",
    403: "The request is not permitted.",
    404: "There is no such collection or document.",
    408: "The body did not arrive in time.",
    413: "The body, or the response, is too large.",
    415: "The body does not have the expected Content-Type.",
    421: "The server does not answer to this host name.",
    422: "The model knows no word of the text.",
    429: "Too many requests.",
    503: "The collection is unavailable.",
}
WITH_BODY = (400, 404, 408, 413, 415, 503)  # errors of routes that read a body


def request_body(schema: type[BaseModel]) -> dict[str, Any]:
    """Describe a JSON body that the route reads and validates itself."""
    content = {"schema": schema.model_json_schema(ref_template="#/components/schemas/{model}")}
    return {"requestBody": {"required": True, "content": {"application/json": content}}}


def responses(schema: type[BaseModel] | None, *, errors: tuple[int, ...] = (400, 404, 413, 503)) -> Responses:
    """Describe the JSON response of a route, if it has one, and its errors."""
    success: Responses = {} if schema is None else {200: {"model": schema, "description": "Success."}}
    statuses = sorted({*errors, 401, 403, 421, 429})
    return success | {status: {"model": ErrorResponse, "description": ERRORS[status]} for status in statuses}


def other_content(media_type: str, **schema: str) -> Responses:
    """Describe a successful response that is not JSON."""
    content = {media_type: {"schema": {"type": "string", **schema}}}
    return {200: {"description": "Success.", "content": content}}
