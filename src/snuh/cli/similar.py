"""`snuh similar`: the documents nearest to one of the collection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast

import typer

from snuh.cli.options import (
    CollectionAddress,
    Explain,
    Fast,
    Json,
    K,
    Radius,
    RerankBy,
    Where,
    check_text,
)

if TYPE_CHECKING:
    from snuh.collection import Rerank
    from snuh.collection.searching import SearchOptions

EXAMPLES = (
    "snuh similar tickets ticket-7",
    "snuh similar tickets ticket-7 -k 3 --where 'year >= 2020' --explain",
    "snuh similar tickets -- -7",
)


def similar(
    collection: CollectionAddress,
    identity: Annotated[str, typer.Argument(metavar="ID", help="The document.", callback=check_text)],
    k: K = 10,
    where: Where = None,
    rerank: RerankBy = None,
    radius: Radius = None,
    fast: Fast = False,
    explain: Explain = False,
    as_json: Json = False,
) -> None:
    """Show the documents whose codes are nearest to a document's, itself left out.

    The options are those of "snuh search".
    """
    from snuh.cli.hits import check_k
    from snuh.cli.searching import search_similar

    check_k(k)
    how: SearchOptions = {
        "k": k,
        "where": where,
        "radius": radius,
        "rerank": cast("Rerank | None", rerank),
        "fast": fast,
    }
    search_similar(collection, identity, how, explained=explain, json=as_json)
