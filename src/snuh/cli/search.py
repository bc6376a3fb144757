"""`snuh search`: the documents nearest to a text, in a collection or in any source."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from snuh.cli.base_command import check_text
from snuh.cli.options import (
    Approximate,
    CollectionAddress,
    Explain,
    IdField,
    Json,
    K,
    Radius,
    RerankBy,
    TextField,
    Where,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from snuh.collection import Rerank
    from snuh.collection.query import SearchOptions

EXAMPLES = (
    'snuh search tickets "printer is on fire"',
    "snuh search tickets \"printer is on fire\" --where 'year >= 2020' --rerank cosine --explain",
    "snuh search tickets --queries questions.jsonl -k 3 > hits.jsonl",
    'snuh search tickets.jsonl "printer is on fire" --model model -k 3 --json',
)


def search(
    place: Annotated[
        str, typer.Argument(metavar="COLLECTION", help="A collection; or a source, together with --model.")
    ],
    text: Annotated[
        str | None,
        typer.Argument(metavar="TEXT", help="What to look for.", callback=check_text, show_default=False),
    ] = None,
    k: K = 10,
    where: Where = None,
    rerank: RerankBy = None,
    radius: Radius = None,
    approximate: Approximate = False,
    explain: Explain = False,
    queries: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Search for each text of a source; JSON lines come out."),
    ] = None,
    model: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="Search a source that is no collection.")
    ] = None,
    text_field: TextField = "text",
    id_field: IdField = "id",
    as_json: Json = False,
) -> None:
    """Show the documents whose codes are nearest to a text's.

    The distance is the number of bits that differ; documents at the same distance come in the order in which
    they were added. Documents without any word that the model knows are left out.

    --rerank asymmetric weighs each bit by how sure the query is of it; --rerank cosine compares the words
    themselves. With --queries, a query of which the model knows no word finds nothing, and a warning says so.
    """
    from snuh.cli.output import holds_collection
    from snuh.cli.render import check_k, search_collection, search_queries, search_source
    from snuh.errors import InputError
    from snuh.urls import is_remote, redact

    check_k(k)
    if (text is None) == (queries is None):
        raise InputError(
            "expected a text to look for, or --queries FILE, got " + ("neither" if text is None else "both")
        )
    if model is not None:
        if holds_collection(place):
            raise InputError(f"{redact(place)} is a collection and has a model of its own: leave --model out")
        for_collections = {"where": where, "rerank": rerank, "radius": radius, "queries": queries}
        _refuse(for_collections | {"explain": explain or None, "approximate": approximate or None}, place)
        search_source(place, text or "", model, k=k, text_field=text_field, id_field=id_field, json=as_json)
        return
    if not is_remote(place) and Path(place).exists() and not holds_collection(place):
        raise InputError(
            f'{place} is not a collection: make one with "snuh create FOLDER --from {place}", '
            "or name a model with --model"
        )
    how: SearchOptions = {
        "k": k,
        "where": where,
        "radius": radius,
        "rerank": cast("Rerank | None", rerank),
        "approximate": approximate,
    }
    if queries is not None:
        search_queries(place, queries, how, explained=explain, text_field=text_field, id_field=id_field)
    else:
        search_collection(place, text or "", how, explained=explain, json=as_json)


def _refuse(options: Mapping[str, object], place: str) -> None:
    from snuh.errors import InputError

    for name, value in options.items():
        if value is not None:
            raise InputError(
                f"--{name} needs a collection: make one with "
                f'"snuh create FOLDER --from {place} --model MODEL"'
            )


# `snuh similar`: the documents nearest to one of the collection.

if TYPE_CHECKING:
    from snuh.collection import Rerank
    from snuh.collection.query import SearchOptions

SIMILAR_EXAMPLES = (
    "snuh similar tickets ticket-7",
    "snuh similar tickets ticket-7 -k 3 --where 'year >= 2020' --explain",
    "snuh similar tickets -- -7",
)


def similar(
    collection: CollectionAddress,
    doc_id: Annotated[str, typer.Argument(metavar="ID", help="The document.", callback=check_text)],
    k: K = 10,
    where: Where = None,
    rerank: RerankBy = None,
    radius: Radius = None,
    approximate: Approximate = False,
    explain: Explain = False,
    as_json: Json = False,
) -> None:
    """Show the documents whose codes are nearest to a document's, itself left out.

    The options are those of "snuh search".
    """
    from snuh.cli.render import check_k, search_similar

    check_k(k)
    how: SearchOptions = {
        "k": k,
        "where": where,
        "radius": radius,
        "rerank": cast("Rerank | None", rerank),
        "approximate": approximate,
    }
    search_similar(collection, doc_id, how, explained=explain, json=as_json)
