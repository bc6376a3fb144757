"""JSON as bytes."""

from __future__ import annotations

from typing import Any

from pydantic_core import to_json


def json_bytes(value: Any) -> bytes:  # Any: whatever JSON can say, and tuples
    """Return a value as JSON; what is no number there, such as infinity, becomes null."""
    return to_json(value, inf_nan_mode="null")
