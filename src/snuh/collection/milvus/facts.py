"""What Milvus knows of the documents in use: the model of their codes, and whether the fields are right."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from snuh.collection.milvus.connection import Connection, GoneError
from snuh.collection.milvus.entities import schema
from snuh.collection.milvus.site import Site
from snuh.collection.model_files import is_fingerprint
from snuh.errors import CollectionError, InputError

FORMAT, VERSION = "snuh-collection", 1


@dataclass(frozen=True, slots=True)
class Facts:
    """What does not change for as long as these are the documents in use."""

    documents: str  # their name in Milvus
    turn: str  # alias
    model: str  # fingerprint
    bits: int

    @property
    def width(self) -> int:
        """Bytes of a code."""
        return self.bits // 8

    def description(self) -> str:
        """Return the text that Milvus keeps with the documents."""
        told = {key: value for key, value in asdict(self).items() if key != "documents"}
        return json.dumps({"format": FORMAT, "format_version": VERSION, **told})


def read_facts(connection: Connection) -> Facts:
    """Return the facts; InputError where there is no collection, CollectionError where it cannot be used."""
    site = connection.site
    try:
        described = connection.describe(site.name)
    except GoneError:
        raise _absent(connection) from None
    told = _told(described)
    if told is None:
        raise InputError(f'{site.shown} is not a collection of snuh: expected one made by "snuh create"')
    if told.get("format_version") != VERSION:
        raise CollectionError(
            f"{site.shown} has format {told.get('format_version')}, this snuh reads {VERSION}: update snuh"
        )
    try:
        facts = Facts(str(described["collection_name"]), told["turn"], told["model"], int(told["bits"]))
    except (KeyError, TypeError, ValueError):
        facts = Facts("", "", "", 0)
    if not is_fingerprint(facts.model) or not facts.turn.startswith(f"{site.name}__turn_"):
        raise CollectionError(f"{site.shown} is damaged: its description in Milvus was changed")
    _check_fields(described, facts, shown=site.shown)
    return facts


def is_ours(connection: Connection) -> bool | None:
    """Tell whether the name is one of a collection of snuh, whole or damaged; None where nothing has it."""
    try:
        return _told(connection.describe(connection.site.name)) is not None
    except GoneError:
        return None


def leftovers(connection: Connection, site: Site, *, used: str = "") -> list[str]:
    """Return names of documents not in use: of a create or a rehash that goes on, or was stopped."""
    return [name for name in connection.names() if name.startswith(site.documents_prefix) and name != used]


def _absent(connection: Connection) -> InputError | CollectionError:
    site = connection.site
    if left := leftovers(connection, site):
        return CollectionError(
            f"{site.shown} is not whole: the making of it goes on, or was stopped; "
            f"wait for it, or make it again ({left[0]} is there)"
        )
    return InputError(
        f'there is no collection {site.shown}: make one with "snuh create {site.shown} --from SOURCE"'
    )


def _told(described: dict[str, Any]) -> dict[str, Any] | None:
    try:
        told = json.loads(described.get("description", ""))
    except ValueError:
        return None
    return told if isinstance(told, dict) and told.get("format") == FORMAT else None


def _check_fields(described: dict[str, Any], facts: Facts, *, shown: str) -> None:
    found = {field["name"]: (field["type"].name, field["params"].get("dim")) for field in described["fields"]}
    for field in schema(facts.bits):
        name, kind, bits = field["field_name"], field["datatype"], field.get("dim")
        if found.get(name) != (kind, bits):
            raise CollectionError(
                f"{shown}: its fields in Milvus were changed: expected {name} as {kind}"
                + (f" of {bits} bits" if bits else "")
                + f", got {'nothing' if name not in found else found[name][0]}"
                + (f" of {found[name][1]} bits" if name in found and bits else "")
            )
