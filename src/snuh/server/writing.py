"""JSON as bytes."""

from __future__ import annotations

import json
from typing import Any

from pydantic_core import PydanticSerializationError, to_json


def json_bytes(value: Any) -> bytes:  # Any: whatever JSON can say, and tuples
    """Return a value as JSON; what is no number there, such as infinity, becomes null."""
    try:
        return to_json(value, inf_nan_mode="null")
    except PydanticSerializationError:  # a document's fields may lie deeper in each other than it goes
        return json.dumps(value, allow_nan=False).encode()
