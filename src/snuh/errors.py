"""The errors that a user of snuh can meet, and can do something about."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable


class SnuhError(Exception):
    """Base of every error raised on purpose; its text is one line for the user."""


class InputError(SnuhError, ValueError):
    """Bad data, source, option or parameter."""


class ModelError(SnuhError):
    """A model folder that cannot be used: truncated, tampered with, or of a newer format."""


class CollectionError(SnuhError):
    """A collection that cannot be used: damaged, of a newer format, in use, or on a full disk."""


class UnknownDocumentError(InputError):
    """An id that no document of the collection has."""


class MissingExtraError(SnuhError, ImportError):
    """An optional dependency that is not installed."""


def suggest(name: str, known: Iterable[str]) -> str:
    """Return ' (did you mean "x"?)' for the known name nearest to `name`, or '' if none is near."""
    by_folded = {candidate.lower(): candidate for candidate in known}
    near = difflib.get_close_matches(name.lower(), by_folded, n=1)
    return f' (did you mean "{by_folded[near[0]]}"?)' if near else ""


def check_arguments(
    call: Callable[..., object], given: Iterable[str], *, what: str, but: Iterable[str] = ()
) -> None:
    """Raise InputError, with the nearest name, for the first given name that is no argument of `call`."""
    known = [name for name in inspect.signature(call).parameters if name not in but]
    for name in given:
        if name not in known:
            raise InputError(
                f'{what} has no "{name}"{suggest(name, known)}: expected one of {", ".join(known)}'
            )


def missing_extra(error: ModuleNotFoundError) -> ImportError:
    """Return what to raise for a module that is missing: the extra to install, if it is one of an extra's."""
    if error.name == "httpx":
        return MissingExtraError('the client needs httpx: pip install "snuh[client]"')
    names = {"torch": "PyTorch", "sklearn": "scikit-learn"}
    if error.name not in names:
        return error
    return MissingExtraError(f'training needs {names[error.name]}: pip install "snuh[train]"')
