"""Addresses of collections: a folder, or a database server; and how to show one without its password."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TypeAlias

Address: TypeAlias = Path | str

MODULES = {  # that open the collections of a scheme
    "postgresql": "snuh.collection.postgres",
    "postgres": "snuh.collection.postgres",
    "milvus": "snuh.collection.milvus",
}
SCHEME = re.compile(rf"({'|'.join(MODULES)})://", re.IGNORECASE)
# A password after the user, or as a parameter. It may hold any sign, so all up to the last "@" is hidden.
PASSWORD = re.compile(r"(?<=://)([^/?#@:]*):.*@(?=[^@]*$)", re.DOTALL)
PARAMETER = re.compile(r"([?&](?:[a-z_]*password|token|secret)=)[^&#]*", re.IGNORECASE)


def is_remote(address: Address) -> bool:
    """Tell whether an address names a database server rather than a folder."""
    return isinstance(address, str) and SCHEME.match(address) is not None


def shown(address: Address) -> str:
    """Return an address as it may be shown, logged and answered: without its password."""
    if not is_remote(address):
        return str(address)
    return PARAMETER.sub(r"\1***", PASSWORD.sub(r"\1:***@", str(address)))
