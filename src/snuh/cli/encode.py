"""`snuh encode`: codes for documents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snuh.cli.options import IdField, Json, ModelFolder, Source, TextField

EXAMPLES = (
    "snuh encode model tickets.jsonl --out codes.parquet",
    "cat new.jsonl | snuh encode model - --out codes.jsonl",
)


def encode(
    model: ModelFolder,
    source: Source,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where the codes go: .parquet, .npy or .jsonl.")],
    text_field: TextField = "text",
    id_field: IdField = "id",
    as_json: Json = False,
) -> None:
    """Write the codes of documents, with their ids, to a file.

    .parquet has the columns id (string) and code (binary); .jsonl has "id" and "code" (hexadecimal) on each
    line; .npy holds the codes as bytes, one row a document, and the ids go to a JSON list beside it
    (codes.ids.json for codes.npy). An existing file is replaced once the new one is complete, but never the
    source, nor an .ids.json file that is no such list.
    """
    import time

    from snuh.cli.base_command import say
    from snuh.cli.code_writers import files_of, open_writer
    from snuh.cli.output import (
        check_no_source,
        check_writable,
        display,
        open_documents,
        plural,
        print_facts,
        print_json,
    )
    from snuh.encoding import encode_source
    from snuh.model import load

    started = time.perf_counter()
    for file in files_of(out):
        check_writable(file)
        check_no_source(file, source)
    loaded = load(model)
    documents = open_documents(source, text_field=text_field, id_field=id_field)
    count = unknown = 0
    with display() as shown, open_writer(out, bits=loaded.bits) as write:
        for batch in encode_source(loaded, documents, progress=shown.stage("Encoding")):
            write([document.id for document in batch.documents], batch.codes)
            count += len(batch.documents)
            unknown += int((~batch.known).sum())
    if unknown:
        say(f"warning: {unknown:,} of {plural(count, 'document')} have no known word: they all got one code")
    seconds = time.perf_counter() - started
    if as_json:
        print_json(
            {
                "file": str(out),
                "documents": count,
                "bits": loaded.bits,
                "without_known_words": unknown,
                "seconds": round(seconds, 3),
            }
        )
        return
    facts = [("codes", str(out)), ("documents", f"{count:,}"), ("bits", str(loaded.bits))]
    print_facts([*facts, ("seconds", f"{seconds:.1f}")])


# `snuh evaluate`: how good the codes are, by labels.

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snuh.metrics import Evaluation

EVALUATE_EXAMPLES = (
    "snuh evaluate model tickets.jsonl",
    "snuh evaluate model tickets.jsonl --cutoffs 10,100 --json",
    "snuh evaluate model tickets.jsonl --query-split val",
)


def evaluate(
    model: ModelFolder,
    source: Source,
    cutoffs: Annotated[
        str | None, typer.Option(metavar="K,K,...", help="Precision at these ranks (1,10,50,100,1000).")
    ] = None,
    query_split: Annotated[str, typer.Option(metavar="SPLIT", help="The documents to search with.")] = "test",
    database_split: Annotated[str, typer.Option(metavar="SPLIT", help="The documents to find.")] = "train",
    text_field: TextField = "text",
    id_field: IdField = "id",
    as_json: Json = False,
) -> None:
    """Measure how well the codes find documents with the same labels.

    Each document of the test split searches the train split (documents without a split belong to it, as in
    fit). A hit is any shared label; among documents at equal distance, precision is the expected one.
    """
    from snuh.cli.output import display, open_documents, print_json
    from snuh.encoding import encode_source
    from snuh.evaluation import evaluate_splits
    from snuh.model import load

    chosen = _parse_cutoffs(cutoffs)
    loaded = load(model)
    documents = open_documents(source, text_field=text_field, id_field=id_field)
    with display() as shown:
        evaluation = evaluate_splits(
            encode_source(loaded, documents, progress=shown.stage("Encoding")),
            name=documents.name,
            query_split=query_split,
            database_split=database_split,
            cutoffs=chosen,
        )
    summary = {
        "model": str(model),
        "method": loaded.method,
        "bits": loaded.bits,
        "source": documents.name,
        "query_split": query_split,
        "database_split": database_split,
        **evaluation.to_json(),
    }
    if as_json:
        print_json(summary)
        return
    print_evaluation(summary, evaluation)


def _parse_cutoffs(text: str | None) -> Sequence[int] | None:
    from snuh.errors import InputError

    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise InputError(f'cutoffs must be whole numbers from 1, such as 10,100, got "{text}"')
    return sorted({int(part) for part in parts})


def print_evaluation(summary: dict[str, Any], evaluation: Evaluation) -> None:
    """Print the scores as a table."""
    from rich import box
    from rich.table import Table

    from snuh.cli.output import plural, results_console
    from snuh.metrics import HEADLINE_CUTOFF

    health = evaluation.health
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("measure", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("", style="dim")
    for cutoff, precision in evaluation.precision.items():
        style = "bold green" if cutoff == HEADLINE_CUTOFF else None
        table.add_row(f"precision@{cutoff}", f"{precision:.4f}", style=style)
    table.add_row("chance", f"{evaluation.chance:.4f}", "precision of random codes", end_section=True)
    table.add_row(
        f"within radius {evaluation.radius}",
        f"{evaluation.precision_within_radius:.4f}",
        f"precision; {evaluation.empty_radius_fraction:.0%} of the queries find nothing there",
    )
    share = health.distinct_codes / health.documents
    table.add_row("distinct codes", f"{health.distinct_codes:,}", f"{share:.0%} of the documents")
    table.add_row(
        "biggest bucket", f"{health.largest_bucket_fraction:.2%}", "of the documents share one code"
    )
    ones = health.ones_fraction
    constant = f"; {plural(health.constant_bits, 'bit')} never change" if health.constant_bits else ""
    table.add_row("bit balance", f"{min(ones):.2f}–{max(ones):.2f}", f"share of ones, by bit{constant}")
    correlation = "none" if health.bit_correlation is None else f"{health.bit_correlation:.4f}"
    table.add_row("bit correlation", correlation, "mean size over pairs of bits")
    console = results_console()
    console.print(
        f"[bold]{summary['method']}[/bold], {summary['bits']} bits: "
        f"{plural(evaluation.queries, 'query').replace('querys', 'queries')} ({summary['query_split']}) "
        f"against {plural(health.documents, 'document')} ({summary['database_split']}) of {summary['source']}"
    )
    if evaluation.queries_without_labels:
        left_out = plural(evaluation.queries_without_labels, "document")
        console.print(f"{left_out} of {summary['query_split']} without labels left out", style="dim")
    console.print(table)
    if not health.alive:
        console.print("The codes are dead: they hardly tell documents apart.", style="bold red")
