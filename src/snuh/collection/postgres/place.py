"""The address of a collection in PostgreSQL: libpq's own, and the name of the collection.

`postgresql://user@host:port/database?collection=tickets` is the schema `tickets` of that database. Whatever
libpq takes may follow (`sslmode=verify-full`), and what is missing comes from where libpq takes it: PGHOST,
PGPASSWORD, ~/.pgpass, a service file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from snuh.addresses import check_signs, shown
from snuh.errors import InputError

USUAL_COLLECTION = "snuh"
COLLECTION = re.compile(r"[a-z_][a-z0-9_]{0,62}")
RESERVED = re.compile(r"pg_|information_schema$")
# A server that is gone without a word is noticed after half a minute.
CONNECTING = {
    "connect_timeout": "10",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
    "application_name": "snuh",
}


@dataclass(frozen=True, slots=True, repr=False)
class PgPlace:
    """Where a collection is."""

    name: str  # the address without its password
    conninfo: str  # with it
    schema: str  # the name of the collection: safe to write into SQL


def read_place(address: str) -> PgPlace:
    """Take an address apart; InputError where it is none."""
    check_signs(address)
    base, _, query = address.partition("?")
    parameters = [part for part in query.split("&") if part]
    names = [unquote(part.partition("=")[2]) for part in parameters if part.startswith("collection=")]
    others = [part for part in parameters if not part.startswith("collection=")]
    schema = names[-1] if names else USUAL_COLLECTION
    if not COLLECTION.fullmatch(schema) or RESERVED.match(schema):
        raise InputError(
            f"{shown(address)}: a collection's name is made of up to 63 small letters, digits and _"
        )
    try:
        given = conninfo_to_dict(f"{base}?{'&'.join(others)}" if others else base)
    except ProgrammingError:  # its text holds the address with the password
        raise InputError(
            f"{shown(address)}: expected an address such as postgresql://user@host/database?collection=tickets"
        ) from None
    return PgPlace(shown(address), make_conninfo("", **{**CONNECTING, **given}), schema)
