"""Addresses of collections: a folder, or a database server; and how to show one without its password."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TypeAlias

from snuh.errors import InputError

Address: TypeAlias = Path | str

MODULES = {  # that open the collections of a scheme
    "postgresql": "snuh.collection.postgres",
    "postgres": "snuh.collection.postgres",
    "milvus": "snuh.collection.milvus",
}
SCHEME = re.compile(rf"({'|'.join(MODULES)})://", re.IGNORECASE)
HARMLESS = (  # parameters that are shown; any other may be a secret, whatever clients will call theirs
    "application_name|collection|connect_timeout|dbname|host|hostaddr|port|sslmode|target_session_attrs|tls|user"
)
# A password after the user, or as a parameter. It may hold any sign, so all up to the last "@" is hidden.
PASSWORD = re.compile(r"(?<=://)[^/?#@:]*:(?P<secret>.*)(?=@[^@]*$)", re.DOTALL)
PARAMETER = re.compile(rf"[?&](?!(?:{HARMLESS})=)(?:[^=&?]*=)?(?P<secret>[^&]+)")


def is_remote(address: Address) -> bool:
    """Tell whether an address names a database server rather than a folder."""
    return isinstance(address, str) and SCHEME.match(address) is not None


def redact(address: Address) -> str:
    """Return an address as it may be shown, logged and answered: without its password."""
    if not is_remote(address):
        return str(address)
    text = str(address)
    secrets = sorted(
        found.span("secret") for pattern in (PASSWORD, PARAMETER) for found in pattern.finditer(text)
    )
    parts, end = [], 0
    for start, stop in secrets:
        if start >= end:  # what two of them share is hidden once
            parts += [text[end:start], "***"]
        end = max(end, stop)
    return "".join([*parts, text[end:]])


def check_characters(address: str) -> None:
    """Raise InputError where a sign of the user or password is taken for the end of it.

    The rest of the password would be taken for a host or a name, and would be told in messages.
    """
    authority, _, path = address.partition("://")[2].partition("?")[0].partition("/")
    if authority.count("@") > 1 or "@" in path:
        raise InputError(
            f"{redact(address)}: expected one @, before the host: in a user or password write %40 for @, "
            "%2F for / and %3A for :"
        )
