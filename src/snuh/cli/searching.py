"""The three kinds of search: a text or many in a collection, and a text in a source."""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path

import typer

from snuh.cli.display import display
from snuh.cli.group import say
from snuh.cli.hits import Found, print_found
from snuh.cli.output import print_json
from snuh.cli.sources import open_documents, open_texts
from snuh.collection import Collection
from snuh.collection.searching import SearchOptions
from snuh.encoding import encode_source
from snuh.model import load
from snuh.search import encode_query, nearest_hits
from snuh.storage import dump_json

QUERIES_AT_ONCE, HITS_AT_ONCE = 1_000, 20_000  # whole documents are in memory
IDS_SHOWN = 5


def search_collection(address: str, text: str, how: SearchOptions, *, explained: bool, json: bool) -> None:
    """Search for one text."""
    with Collection(address) as collection:
        hits = collection.search(text, **how)
        found = Found.of(text, hits, explained_by=collection.model if explained else None)
        bits = collection.model.bits
    show(found, {"query": text, "bits": bits}, json=json)


def search_similar(address: str, identity: str, how: SearchOptions, *, explained: bool, json: bool) -> None:
    """Search for the text of a document."""
    with Collection(address) as collection:
        hits = collection.similar(identity, **how)
        text = collection.get(identity).text
        found = Found.of(text, hits, explained_by=collection.model if explained else None)
        bits = collection.model.bits
    show(found, {"id": identity, "bits": bits}, json=json)


def search_queries(
    address: str, queries: str, how: SearchOptions, *, explained: bool, text_field: str, id_field: str
) -> None:
    """Search for each text of a source, and print a line of JSON for each."""
    unknown: list[str] = []
    out = sys.stdout  # while bars are shown, sys.stdout is one that writes above them, to stderr
    with Collection(address) as collection, display() as shown:
        model = collection.model if explained else None
        source = open_texts(queries, text_field=text_field, id_field=id_field)
        documents = source.documents(None if out.isatty() else shown.stage("Searching"))
        at_once = max(1, min(QUERIES_AT_ONCE, HITS_AT_ONCE // how.get("k", 10)))
        while batch := list(islice(documents, at_once)):
            answers = collection.search_many([query.text for query in batch], **how)
            unknown += [query.id for query, hits in zip(batch, answers, strict=True) if hits is None]
            for query, hits in zip(batch, answers, strict=True):
                found = Found.of(query.text, hits or [], explained_by=model)
                typer.echo(dump_json({"query": query.id, "hits": found.to_json()}), file=out)
    if unknown:
        names = ", ".join(unknown[:IDS_SHOWN]) + (", ..." if len(unknown) > IDS_SHOWN else "")
        say(f"warning: the model knows no word of these queries, which found nothing: {names}")


def search_source(
    spec: str, text: str, model: Path, *, k: int, text_field: str, id_field: str, json: bool
) -> None:
    """Search for one text in a source, which is encoded for that."""
    loaded = load(model)
    query = encode_query(loaded, text)
    documents = open_documents(spec, text_field=text_field, id_field=id_field)
    with display() as shown:
        batches = encode_source(loaded, documents, progress=shown.stage("Searching"))
        hits = nearest_hits(query, batches, k=k)
    show(Found(text, hits), {"query": text, "bits": loaded.bits}, json=json)


def show(found: Found, about: dict[str, object], *, json: bool) -> None:
    """Print what was found."""
    if json:
        print_json({**about, "hits": found.to_json()})
    else:
        print_found(found)
