"""What a search found: a table for people, JSON for machines, and the words that brought each hit up."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from snuh.cli.base_command import harmless, say
from snuh.cli.output import (
    display,
    hit_to_json,
    open_documents,
    open_texts,
    plural,
    print_facts,
    print_json,
    results_console,
    start_of,
)
from snuh.collection import Collection
from snuh.collection.query import SearchOptions
from snuh.dedup import DuplicateReport
from snuh.encoding import encode_source
from snuh.errors import InputError, suggest
from snuh.explain import Explanation, WordContribution, explain, marked
from snuh.io import atomic_write, dump_json
from snuh.model import Model, load
from snuh.search import Hit, encode_query, nearest_hits

if TYPE_CHECKING:
    from rich.console import Console

STRONG, WEAK = 0.35, 0.05  # weights from which a word is marked


@dataclass(frozen=True, slots=True)
class Found:
    """The hits of a query, and, where they were asked for, as many reasons."""

    query: str
    hits: Sequence[Hit]
    reasons: Sequence[Explanation] = ()

    @classmethod
    def of(cls, query: str, hits: Sequence[Hit], *, explained_by: Model | None = None) -> Found:
        """Return the hits, with reasons where there is a model to ask."""
        if explained_by is None:
            return cls(query, hits)
        return cls(query, hits, [explain(explained_by, query, hit.document.text) for hit in hits])

    def to_json(self) -> list[dict[str, Any]]:
        """Return the hits as plain values; a word of an explanation comes with its shares."""
        rows = [hit_to_json(hit) for hit in self.hits]
        for row, reason in zip(rows, self.reasons, strict=False):
            row["query_words"] = [_share_to_json(share) for share in reason.query_words]
            row["words"] = [_share_to_json(share) for share in reason.hit_words]
        return rows


def check_k(k: int) -> None:
    """Raise InputError unless something is asked for."""
    if k < 1:
        raise InputError(f"-k must be at least 1, got {k}")


def print_found(found: Found) -> None:
    """Print hits as a table, one line each, and below it the reason where there is one."""
    console = results_console()
    has_labels = any(hit.document.labels for hit in found.hits)
    has_scores = any(hit.score is not None for hit in found.hits)
    if found.reasons:
        shares = _summed([reason.query_words for reason in found.reasons])
        console.print(Text.assemble(("query  ", "dim"), _marked(found.query, shares, console)))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=True)
    table.add_column("distance", justify="right", no_wrap=True)
    if has_scores:
        table.add_column("score", justify="right", no_wrap=True)
    table.add_column("id", no_wrap=True, style="cyan", max_width=48)
    if has_labels:
        table.add_column("labels", no_wrap=True, style="green", max_width=24)
    table.add_column("text", no_wrap=True, ratio=1)  # takes the width that the others leave
    for number, hit in enumerate(found.hits):
        scores = [f"{hit.score:.3f}" if hit.score is not None else ""] if has_scores else []
        labels = [Text(harmless(", ".join(hit.document.labels)))] if has_labels else []
        line = Text(harmless(start_of(hit.document.text)))
        table.add_row(str(hit.distance), *scores, Text(harmless(hit.document.id)), *labels, line)
        if found.reasons:
            snippet = _marked(hit.document.text, found.reasons[number].hit_words, console)
            table.add_row(*[""] * (2 + has_scores + has_labels), snippet)
    console.print(table)


def _marked(text: str, shares: Sequence[WordContribution], console: Console) -> Text:
    """Mark the words that made two codes agree, and those that made them differ; signs where no colours are.

    What a word did for the bits that agree, less what it did for those that differ, is how far it pushed the
    code towards the other one, or away from it.
    """
    has_colours = console.color_system is not None and not console.no_color
    contributions = [replace(share, agreeing=share.agreeing - share.differing) for share in shares]
    line = Text(no_wrap=False)
    for fragment in marked(text, contributions):
        words, weight = harmless(fragment.text), fragment.weight
        if abs(weight) < WEAK:
            line.append(words)
        elif has_colours:
            style = "dim red" if weight < 0 else "bold green" if weight >= STRONG else "green"
            line.append(words, style=style)
        else:
            line.append(f"*{words}*" if weight > 0 else f"~{words}~")
    return line


def _summed(all_shares: Sequence[Sequence[WordContribution]]) -> list[WordContribution]:
    """Add up the shares that the words of one text have in several explanations."""
    sums: dict[str, WordContribution] = {}
    for shares in all_shares:
        for share in shares:
            before = sums.get(share.word)
            sums[share.word] = (
                share
                if before is None
                else replace(
                    share,
                    agreeing=before.agreeing + share.agreeing,
                    differing=before.differing + share.differing,
                )
            )
    return list(sums.values())


def _share_to_json(share: WordContribution) -> dict[str, Any]:
    return {"word": share.word, "agreeing": round(share.agreeing, 6), "differing": round(share.differing, 6)}


# The three kinds of search: a text or many in a collection, and a text in a source.

QUERIES_AT_ONCE, HITS_AT_ONCE = 1_000, 20_000  # whole documents are in memory
IDS_SHOWN = 5


def search_collection(address: str, text: str, how: SearchOptions, *, explained: bool, json: bool) -> None:
    """Search for one text."""
    with Collection(address) as collection:
        hits = collection.search(text, **how)
        found = Found.of(text, hits, explained_by=collection.model if explained else None)
        bits = collection.model.bits
    show(found, {"query": text, "bits": bits}, json=json)


def search_similar(address: str, doc_id: str, how: SearchOptions, *, explained: bool, json: bool) -> None:
    """Search for the text of a document."""
    with Collection(address) as collection:
        hits = collection.similar(doc_id, **how)
        text = collection.get(doc_id).text
        found = Found.of(text, hits, explained_by=collection.model if explained else None)
        bits = collection.model.bits
    show(found, {"id": doc_id, "bits": bits}, json=json)


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


# What a search for duplicates found: a summary for people, a line for each duplicate in a file.

SUFFIXES = (".jsonl", ".csv")
FIELDS = ("id", "action", "cluster", "representative", "similarity", "distance")
CLUSTERS_SHOWN, DUPLICATES_SHOWN = 10, 4


def check_out(path: Path) -> None:
    """Raise InputError where `path` asks for a kind of file that there is not."""
    if path.suffix.lower() not in SUFFIXES:
        kinds = " or ".join(SUFFIXES)
        raise InputError(
            f"{path}: duplicates are written to files ending in {kinds}{suggest(path.suffix, SUFFIXES)}"
        )


def write_report(path: Path, report: DuplicateReport) -> None:
    """Write a line for each document of a cluster, by cluster, the kept one first."""
    with atomic_write(path) as beside, beside.open("w", encoding="utf-8", newline="") as file:
        if path.suffix.lower() == ".csv":
            writer = csv.DictWriter(file, FIELDS)
            writer.writeheader()
            writer.writerows(one.to_json() for one in report.duplicates)
        else:
            file.writelines(dump_json(one.to_json()) + "\n" for one in report.duplicates)


def report_to_json(report: DuplicateReport) -> dict[str, Any]:
    """Return the summary and the biggest clusters as plain values."""
    biggest = [[one.to_json() for one in cluster] for cluster in report.biggest(CLUSTERS_SHOWN)]
    return {**report.summary(), "biggest": biggest}


def print_report(report: DuplicateReport, *, out: Path | None, deleted: int | None) -> None:
    """Print the summary and the biggest clusters."""
    share = report.dropped / max(1, report.documents)
    facts = [
        ("documents", f"{report.documents:,}"),
        ("duplicates", f"{report.dropped:,} ({share:.1%}), in {plural(report.clusters, 'cluster')}"),
        ("compared", f"within {report.radius} bits, similarity from {report.threshold:.3g}"),
    ]
    if out is not None:
        facts.append(("written to", str(out)))
    if deleted is not None:
        facts.append(("deleted", plural(deleted, "document")))
    print_facts(facts)
    if not report.clusters:
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=True, title_justify="left")
    table.add_column("size", justify="right", no_wrap=True)
    table.add_column("kept", no_wrap=True, style="cyan", max_width=40)
    table.add_column("similarity", justify="right", no_wrap=True)
    table.add_column("repeated by", no_wrap=True, ratio=1)
    for cluster in report.biggest(CLUSTERS_SHOWN):
        others = [one for one in cluster if not one.keep]
        names = ", ".join(one.id for one in others[:DUPLICATES_SHOWN]) + (
            ", ..." if len(others) > DUPLICATES_SHOWN else ""
        )
        least = min(one.similarity for one in cluster)
        kept = Text(harmless(cluster[0].id))
        table.add_row(str(len(cluster)), kept, f"from {least:.2f}", Text(harmless(names)))
    results_console().print(table)
