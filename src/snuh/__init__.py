"""Semantic hashing: learn short binary codes for text documents, and search by them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from snuh.client import AsyncClient as AsyncClient
    from snuh.client import Client as Client
    from snuh.collection import Collection as Collection
    from snuh.corpus import Document as Document
    from snuh.corpus import open_source as open_source
    from snuh.hasher import TextHasher as TextHasher
    from snuh.hub import pull as pull
    from snuh.hub import push as push
    from snuh.methods.snuh import SNUH as SNUH
    from snuh.methods.snuh_plus import SNUHPlus as SNUHPlus
    from snuh.model import Model as Model
    from snuh.model import load as load

__version__ = "0.2.0"

# Imported on first use, so that `import snuh` is fast and does not need torch.
_MODULES = {
    "AsyncClient": "snuh.client",
    "Client": "snuh.client",
    "Collection": "snuh.collection",
    "Document": "snuh.corpus",
    "Model": "snuh.model",
    "SNUH": "snuh.methods.snuh",
    "SNUHPlus": "snuh.methods.snuh_plus",
    "TextHasher": "snuh.hasher",
    "load": "snuh.model",
    "open_source": "snuh.corpus",
    "pull": "snuh.hub",
    "push": "snuh.hub",
}
__all__ = [
    "SNUH",
    "AsyncClient",
    "Client",
    "Collection",
    "Document",
    "Model",
    "SNUHPlus",
    "TextHasher",
    "__version__",
    "load",
    "open_source",
    "pull",
    "push",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'snuh' has no attribute {name!r}")
    try:
        value = getattr(import_module(_MODULES[name]), name)
    except ModuleNotFoundError as error:
        from snuh.errors import missing_extra

        raise missing_extra(error) from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
