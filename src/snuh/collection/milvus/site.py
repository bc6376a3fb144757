"""Where in Milvus a collection is, `milvus://user:password@host:19530/name`, and its names there.

| name in Milvus | what it is |
|---|---|
| `NAME` | an alias of the documents in use, so that a rehash can switch at once |
| `NAME__documents_TOKEN` | documents, codes and the model: see `entities` |
| `NAME__turn_TOKEN` | an alias of an empty collection, whose name says whether somebody writes: see `turn` |
"""

from __future__ import annotations

import os
import re
import secrets
from dataclasses import dataclass
from urllib.parse import parse_qs, unquote, urlsplit

from snuh.errors import InputError
from snuh.urls import check_characters, redact

PORT = 19_530
TOKEN_VARIABLE = "MILVUS_TOKEN"  # "user:password", or the key of a hosted Milvus
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,99}")
EXPECTED = "expected milvus://HOST:PORT/NAME or milvus://USER:PASSWORD@HOST:PORT/DATABASE/NAME"


@dataclass(frozen=True, slots=True)
class Site:
    """A collection on a server."""

    shown: str  # the address without its password
    uri: str
    token: str  # empty where the server asks for none
    database: str
    name: str

    def __repr__(self) -> str:
        return f"Site({self.shown})"

    @property
    def documents_prefix(self) -> str:
        """What the names of its documents begin with."""
        return f"{self.name}__documents_"

    def new_documents(self) -> str:
        """Return a name that nothing in Milvus has yet."""
        return f"{self.documents_prefix}{secrets.token_hex(4)}"

    def new_turn(self) -> str:
        """Return a name that nothing in Milvus has yet."""
        return f"{self.name}__turn_{secrets.token_hex(4)}"


def site_of(address: str) -> Site:
    """Read an address; InputError where it is none."""
    check_characters(address)
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port or PORT
        options = parse_qs(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:  # its text may hold a part of the password
        raise InputError(f"{EXPECTED}, got {redact(address)}") from None
    *database, name = parts.path.strip("/").split("/")
    if not host or len(database) > 1 or parts.fragment or options.keys() - {"tls"}:
        raise InputError(f"{EXPECTED}, perhaps with ?tls=true, got {redact(address)}")
    if not NAME.fullmatch(name) or "__" in name or name.endswith("_"):
        raise InputError(
            "a collection in Milvus has a name of up to 100 letters, digits and single underscores, "
            f"got {name!r}"
        )
    if (tls := options.get("tls", ["false"])[-1]) not in ("true", "false"):
        raise InputError(f"tls must be true or false: {redact(address)}")  # it may hold a secret by mistake
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    token = f"{user}:{password}" if user else password or os.environ.get(TOKEN_VARIABLE, "")
    host = f"[{host}]" if ":" in host else host
    return Site(
        shown=redact(address),
        uri=f"{'https' if tls == 'true' else 'http'}://{host}:{port}",
        token=token,
        database=database[0] if database else "",
        name=name,
    )
