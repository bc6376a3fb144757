"""Which module opens the collection at an address; it is imported only then, with the client it needs."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from snuh.addresses import MODULES, SCHEME, Address
from snuh.collection.backend import BackendModule
from snuh.errors import MissingExtraError

LOCAL = "snuh.collection.local"
EXTRAS = {"psycopg": "postgres", "psycopg_pool": "postgres", "pymilvus": "milvus"}  # by the module they bring


def module_of(address: Address) -> BackendModule:
    """Return the module that opens an address; MissingExtraError where its client is not installed."""
    found = SCHEME.match(address) if isinstance(address, str) else None
    if found is None:
        return cast(BackendModule, import_module(LOCAL))
    scheme = found[1].lower()
    try:
        return cast(BackendModule, import_module(MODULES[scheme]))
    except ModuleNotFoundError as error:
        if (extra := EXTRAS.get(str(error.name).partition(".")[0])) is None:
            raise
        raise MissingExtraError(f'{scheme}:// needs {error.name}: pip install "snuh[{extra}]"') from None


def check_free(address: Address) -> None:
    """Raise InputError unless a collection can be made at an address."""
    module_of(address).check_free(str(address))


def is_collection(address: Address) -> bool:
    """Tell whether there is a collection at an address; what it holds is not checked."""
    return module_of(address).is_collection(str(address))


def short_name(address: Address) -> str:
    """Return what a server calls the collection at an address."""
    return module_of(address).short_name(str(address))
