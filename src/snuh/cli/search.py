"""`snuh search` and `snuh similar`: the documents nearest to a text or to a document."""

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
SIMILAR_EXAMPLES = (
    "snuh similar tickets ticket-7",
    "snuh similar tickets ticket-7 -k 3 --where 'year >= 2020' --explain",
    "snuh similar tickets -- -7",
)


def search(
    target: Annotated[
        str, typer.Argument(metavar="COLLECTION", help="Collection, or with --model any source.")
    ],
    text: Annotated[
        str | None,
        typer.Argument(metavar="TEXT", help="Text to search for.", callback=check_text, show_default=False),
    ] = None,
    k: K = 10,
    where: Where = None,
    rerank: RerankBy = None,
    radius: Radius = None,
    approximate: Approximate = False,
    explain: Explain = False,
    queries: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Search for each text of this source; outputs JSON lines."),
    ] = None,
    model: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="Search a source instead of a collection.")
    ] = None,
    text_field: TextField = "text",
    id_field: IdField = "id",
    as_json: Json = False,
) -> None:
    """Search for the documents whose codes are nearest to that of a text.

    Hits are ordered by Hamming distance, the number of differing bits, and then by insertion order. Documents
    without known words are not found.

    --rerank asymmetric weighs each bit by how certain the query is of it; --rerank cosine compares TF-IDF
    rows. With --queries, a query without known words has no hits, and a warning lists it.
    """
    from snuh.cli.output import holds_collection
    from snuh.cli.render import check_k, search_collection, search_queries, search_source
    from snuh.errors import InputError
    from snuh.urls import is_remote, redact

    check_k(k)
    if (text is None) == (queries is None):
        raise InputError(
            "expected a text to search for, or --queries FILE, got " + ("neither" if text is None else "both")
        )
    if model is not None:
        if holds_collection(target):
            raise InputError(f"{redact(target)} is a collection, which has its own model: omit --model")
        _reject_collection_options(
            {
                "--where": where,
                "--rerank": rerank,
                "--radius": radius,
                "--queries": queries,
                "--explain": explain or None,
                "--approximate": approximate or None,
            },
            target,
        )
        search_source(target, text or "", model, k=k, text_field=text_field, id_field=id_field, json=as_json)
        return
    if not is_remote(target) and Path(target).exists() and not holds_collection(target):
        raise InputError(
            f'{target} is not a collection: create one with "snuh create FOLDER --from {target}", '
            "or name a model with --model"
        )
    options = _search_options(k, where, radius, rerank, approximate)
    if queries is not None:
        search_queries(target, queries, options, explained=explain, text_field=text_field, id_field=id_field)
    else:
        search_collection(target, text or "", options, explained=explain, json=as_json)


def similar(
    collection: CollectionAddress,
    doc_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the document.", callback=check_text)],
    k: K = 10,
    where: Where = None,
    rerank: RerankBy = None,
    radius: Radius = None,
    approximate: Approximate = False,
    explain: Explain = False,
    as_json: Json = False,
) -> None:
    """Search for the documents whose codes are nearest to that of a document, without itself.

    The options are those of "snuh search".
    """
    from snuh.cli.render import check_k, search_similar

    check_k(k)
    options = _search_options(k, where, radius, rerank, approximate)
    search_similar(collection, doc_id, options, explained=explain, json=as_json)


def _search_options(
    k: int, where: str | None, radius: int | None, rerank: str | None, approximate: bool
) -> SearchOptions:
    return {
        "k": k,
        "where": where,
        "radius": radius,
        "rerank": cast("Rerank | None", rerank),
        "approximate": approximate,
    }


def _reject_collection_options(options: Mapping[str, object], source: str) -> None:
    from snuh.errors import InputError

    for name, value in options.items():
        if value is not None:
            raise InputError(
                f"{name} needs a collection: create one with "
                f'"snuh create FOLDER --from {source} --model MODEL"'
            )
