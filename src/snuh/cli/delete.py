"""`snuh delete`: documents out of a collection."""

from __future__ import annotations

from typing import Annotated

import typer

from snuh.cli.options import CollectionAddress, Json, Where, check_text

EXAMPLES = (
    "snuh delete tickets ticket-7 ticket-12",
    "snuh delete tickets --where 'year < 2020'",
    "snuh delete tickets -- -7",
)


def delete(
    collection: CollectionAddress,
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="ID", help="The documents to delete.", show_default=False)
    ] = None,
    where: Where = None,
    as_json: Json = False,
) -> None:
    """Delete documents from a collection, by their ids or by a filter.

    Nothing is asked: try the filter with "snuh search --where" or "snuh export --where" first. Where an id is
    unknown, nothing is deleted. An id that starts with "-" comes after "--".
    """
    from snuh.addresses import shown
    from snuh.cli.output import plural, print_facts, print_json
    from snuh.collection import Collection
    from snuh.errors import InputError

    for identity in ids or ():
        check_text(identity)
    if bool(ids) == (where is not None):
        raise InputError("expected either ids or --where FILTER, got " + ("both" if ids else "neither"))
    with Collection(collection) as opened:
        deleted = opened.delete_where(where) if where is not None else opened.delete(ids or ())
        left = len(opened)
    if as_json:
        print_json({"collection": shown(collection), "deleted": deleted, "documents": left})
    else:
        print_facts([("deleted", plural(deleted, "document")), ("left", plural(left, "document"))])
