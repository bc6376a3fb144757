"""The errors that a user of snuh can meet, and can do something about."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SnuhError(Exception):
    """Base of every error raised on purpose; its text is one line for the user."""


class InputError(SnuhError, ValueError):
    """Bad data, source, option or parameter."""


class ModelError(SnuhError):
    """A model folder that cannot be used: truncated, tampered with, or of a newer format."""


class MissingExtraError(SnuhError, ImportError):
    """An optional dependency that is not installed."""


def suggest(name: str, known: Iterable[str]) -> str:
    """Return ' (did you mean "x"?)' for the known name nearest to `name`, or '' if none is near."""
    by_folded = {candidate.lower(): candidate for candidate in known}
    near = difflib.get_close_matches(name.lower(), by_folded, n=1)
    return f' (did you mean "{by_folded[near[0]]}"?)' if near else ""
