"""What the routes say about themselves in the schema."""

from __future__ import annotations

from typing import Any, TypeAlias

from pydantic import BaseModel

Responses: TypeAlias = dict[int | str, dict[str, Any]]  # as FastAPI takes them


class ErrorAnswer(BaseModel):
    """Whatever cannot be answered."""

    error: str
    """One sentence."""
    kind: str
    """For programs."""
    position: int | None = None
    """Of a filter, the characters before the problem."""
    what: str | None = None
    """What there is none of."""


def body_of(kind: type[BaseModel]) -> dict[str, Any]:
    """Describe a body, which the route reads itself, within its limits."""
    schema = kind.model_json_schema(ref_template="#/components/schemas/{model}")
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def other_content(kind: str, **schema: str) -> Responses:
    """Describe an answer that is no JSON."""
    return {200: {"description": "Done.", "content": {kind: {"schema": {"type": "string", **schema}}}}}


def answers(kind: type[BaseModel] | None, *, others: tuple[int, ...] = (400, 404, 413, 503)) -> Responses:
    """Describe the answer and the refusals of a route."""
    good: Responses = {} if kind is None else {200: {"model": kind, "description": "Done."}}
    refusals = {*others, 401, 403, 421, 429}
    return good | {
        status: {"model": ErrorAnswer, "description": MEANINGS[status]} for status in sorted(refusals)
    }


MEANINGS = {
    400: "The request makes no sense.",
    401: "A token is needed.",
    403: "This is not allowed.",
    404: "There is no such collection or document.",
    408: "The body took too long.",
    413: "The body, or the answer, is too large.",
    415: "The body does not say that it is JSON.",
    421: "The server has another name.",
    422: "The model knows no word of the text.",
    429: "Too many requests.",
    503: "The collection cannot be used now.",
}
WITH_BODY = (400, 404, 408, 413, 415, 503)
