"""Exceptions of snuh, and helpers for their messages."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

POSIX_MODULES = ("fcntl", "resource")  # that Windows lacks
NEEDS_POSIX = "{} needs Linux or macOS: on Windows, use the Windows Subsystem for Linux"


class SnuhError(Exception):
    """Base class of all errors of snuh; the message is one line."""


class InputError(SnuhError, ValueError):
    """Invalid data, source, option or parameter."""


class ModelError(SnuhError):
    """A model folder that cannot be used: damaged, modified, or of a newer format."""


class CollectionError(SnuhError):
    """A collection that cannot be used: damaged, locked, of a newer format, or on a full disk."""


class UnknownDocumentError(InputError):
    """No document of the collection has this id."""


class MissingExtraError(SnuhError, ImportError):
    """An optional dependency is not installed."""


def suggest(name: str, known: Iterable[str]) -> str:
    """Return ' (did you mean "x"?)' for the known name most similar to `name`, or '' if none is similar."""
    by_folded = {candidate.lower(): candidate for candidate in known}
    near = difflib.get_close_matches(name.lower(), by_folded, n=1)
    return f' (did you mean "{by_folded[near[0]]}"?)' if near else ""


def check_arguments(
    call: Callable[..., object], names: Iterable[str], *, what: str, exclude: Iterable[str] = ()
) -> None:
    """Raise InputError for the first of `names` that is not a parameter of `call`, with a suggestion."""
    known = [name for name in inspect.signature(call).parameters if name not in exclude]
    for name in names:
        if name not in known:
            raise InputError(
                f'{what} has no "{name}"{suggest(name, known)}: expected one of {", ".join(known)}'
            )


def import_extra(name: str) -> Any:  # Any: a module without type stubs
    """Import a module of an optional package; MissingExtraError if it is not installed."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise missing_extra(error) from None


def missing_extra(error: ModuleNotFoundError) -> ImportError:
    """Return the error to raise for a missing module: it names the extra to install, if there is one."""
    if error.name == "httpx":
        return MissingExtraError('the client needs httpx: pip install "snuhash[client]"')
    if error.name == "huggingface_hub":
        return MissingExtraError('the hub needs huggingface-hub: pip install "snuhash[hub]"')
    if error.name == "numba":
        return MissingExtraError('this needs numba: pip install "snuhash[fast]"')
    if error.name == "pyarrow":
        return MissingExtraError(
            'Parquet, data frames and .zst files need pyarrow: pip install "snuhash[parquet]"'
        )
    if error.name in ("model2vec", "sentence_transformers"):
        package = error.name.replace("_", "-")
        return MissingExtraError(f'embedding with this model needs {package}: pip install "snuhash[embed]"')
    names = {"torch": "PyTorch", "sklearn": "scikit-learn"}
    if error.name not in names:
        return error
    return MissingExtraError(f'training needs {names[error.name]}: pip install "snuhash[train]"')
