"""Locations of collections, a folder or the URL of a database server, and redaction of their secrets."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TypeAlias

from snuh.errors import InputError

Location: TypeAlias = Path | str

BACKEND_MODULES = {  # by URL scheme
    "postgresql": "snuh.collection.postgres",
    "postgres": "snuh.collection.postgres",
    "milvus": "snuh.collection.milvus",
}
SCHEME = re.compile(rf"({'|'.join(BACKEND_MODULES)})://", re.IGNORECASE)
# An allowlist: any other parameter may hold a secret, whatever future clients call it.
PUBLIC_PARAMETERS = (
    "application_name|collection|connect_timeout|dbname|host|hostaddr|port|sslmode"
    "|target_session_attrs|tls|user"
)
# A password may contain any character, so everything up to the last "@" is redacted.
PASSWORD = re.compile(r"(?<=://)[^/?#@:]*:(?P<secret>.*)(?=@[^@]*$)", re.DOTALL)
PARAMETER = re.compile(rf"[?&](?!(?:{PUBLIC_PARAMETERS})=)(?:[^=&?]*=)?(?P<secret>[^&]+)")


def is_remote(location: Location) -> bool:
    """Tell whether a location is the URL of a database server rather than a folder."""
    return isinstance(location, str) and SCHEME.match(location) is not None


def redact(location: Location) -> str:
    """Return a location with its secrets replaced by "***", for messages, logs and responses."""
    if not is_remote(location):
        return str(location)
    url = str(location)
    secrets = sorted(
        match.span("secret") for pattern in (PASSWORD, PARAMETER) for match in pattern.finditer(url)
    )
    parts, end = [], 0
    for start, stop in secrets:
        if start >= end:  # overlapping secrets are redacted once
            parts += [url[end:start], "***"]
        end = max(end, stop)
    return "".join([*parts, url[end:]])


def check_credentials(url: str) -> None:
    """Raise InputError if the user or password contains a character that must be percent-encoded.

    Otherwise a part of the password would be parsed as the host or path, and appear in messages.
    """
    authority, _, path = url.partition("://")[2].partition("?")[0].partition("/")
    if authority.count("@") > 1 or "@" in path:
        raise InputError(
            f"{redact(url)}: expected one @, before the host: in a user or password write %40 for @, "
            "%2F for / and %3A for :"
        )
