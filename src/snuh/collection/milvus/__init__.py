"""Collections in Milvus: documents, codes and the model together in a collection of the server."""

from __future__ import annotations

from contextlib import AbstractContextManager, closing

from snuh.collection import backend
from snuh.collection.milvus import making
from snuh.collection.milvus.backend import MilvusBackend
from snuh.collection.milvus.connection import Connection
from snuh.collection.milvus.facts import is_ours
from snuh.collection.milvus.site import site_of
from snuh.model import Model


def open_backend(address: str, *, timeout: float) -> backend.Backend:
    """Open a collection on a server."""
    return MilvusBackend(site_of(address), timeout=timeout)


def creating(address: str, model: Model) -> AbstractContextManager[backend.Put]:
    """Make a collection; nothing on the server may have its name."""
    return making.creating(site_of(address), model)


def ensure_absent(address: str) -> None:
    """Raise InputError where something on the server has the name."""
    with closing(Connection(site_of(address))) as connection:
        making.ensure_absent(connection)


def is_collection(address: str) -> bool:
    """Tell whether the name on the server is one of a collection of snuh."""
    with closing(Connection(site_of(address))) as connection:
        return is_ours(connection) is True


def short_name(address: str) -> str:
    """Return its name on the server."""
    return site_of(address).name
