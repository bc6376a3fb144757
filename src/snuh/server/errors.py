"""Whatever cannot be answered: a status, a kind for programs, and one sentence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic_core import ErrorDetails, PydanticSerializationError, to_json
from starlette.responses import Response

from snuh.corpus.document import describe, quote
from snuh.errors import CollectionError, ModelError, SnuhError, UnknownDocumentError
from snuh.filters import FilterError
from snuh.search import UnknownWordsError
from snuh.urls import redact

# JSON as bytes.


def json_bytes(value: Any) -> bytes:  # Any: whatever JSON can say, and tuples
    """Return a value as JSON; what is no number there, such as infinity, becomes null."""
    try:
        return to_json(value, inf_nan_mode="null")
    except PydanticSerializationError:  # a document's fields may lie deeper in each other than it goes
        return json.dumps(value, allow_nan=False).encode()


SPACE = " "


class Refusal(Exception):
    """A request that is not answered as it hoped."""

    def __init__(self, status: int, kind: str, sentence: str, **more: Any) -> None:  # Any: JSON values
        super().__init__(sentence)
        self.status, self.kind, self.more = status, kind, more
        self.headers: dict[str, str] = {}

    def response(self) -> Response:
        """Return it as an answer."""
        body = refusal_body(self.kind, str(self), **self.more)
        return Response(body, status_code=self.status, headers=self.headers, media_type="application/json")


def refusal_body(kind: str, sentence: str, **more: Any) -> bytes:  # Any: JSON values
    """Return the JSON of a refusal."""
    return json_bytes({"error": SPACE.join(sentence.split()), "kind": kind, **more})


def invalid(sentence: str) -> Refusal:
    """Refuse a request that makes no sense."""
    return Refusal(400, "invalid", sentence)


def too_large(sentence: str) -> Refusal:
    """Refuse a request that asks for too much."""
    return Refusal(413, "too-large", sentence)


def check_length(size: int, limit: int) -> None:
    """Refuse what takes too long an answer."""
    if size > limit:
        raise too_large(f"the answer would have more than {limit:,} bytes: ask for less at once")


def unavailable(sentence: str) -> Refusal:
    """Refuse a request that may be answered later."""
    return Refusal(503, "unavailable", sentence)


def of_error(error: SnuhError, folders: Mapping[str, str]) -> Refusal:
    """Return what an error of the library is over HTTP, where folders go by their names."""
    sentence = str(error)
    for name, folder in folders.items():
        sentence = sentence.replace(redact(folder), name)
    if isinstance(error, FilterError):
        return Refusal(400, "filter", sentence, position=error.position)
    if isinstance(error, UnknownWordsError):
        return Refusal(422, "unknown-words", sentence)
    if isinstance(error, UnknownDocumentError):
        return Refusal(404, "not-found", sentence, what="document")
    if isinstance(error, CollectionError | ModelError):
        return unavailable(sentence)
    return invalid(sentence)


def of_details(details: ErrorDetails) -> Refusal:
    """Return the first thing that is wrong with a body or a query, in one sentence."""
    place = ".".join(str(part) for part in details["loc"])
    problem = details["msg"].removeprefix("Value error, ")
    if details["type"] == "json_invalid":
        return invalid(f"the body is not JSON: {_cause(details)}")
    if details["type"] == "extra_forbidden":
        return invalid(f"there is no field {quote(place)} here: leave it out")
    if details["type"] == "missing":
        return invalid(f"the field {quote(place)} is missing")
    problem = problem[:1].lower() + problem[1:]
    if not place:
        return invalid(problem)
    return invalid(f"{quote(place)}: {problem}, got {_shown(details.get('input'))}")


def _cause(details: ErrorDetails) -> str:
    return str(details.get("ctx", {}).get("error", details["msg"]))


def _shown(value: object) -> str:
    if isinstance(value, bool | int | float) or value is None:
        text = str(value).lower() if isinstance(value, bool) or value is None else repr(value)
        return text if len(text) <= 60 else f"{text[:57]}..."
    return quote(value) if isinstance(value, str) else describe(value)
