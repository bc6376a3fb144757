"""`snuh encode` and `snuh evaluate`: write the codes of documents, and measure their quality."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snuh.cli.options import IdField, Json, ModelFolder, Source, TextField

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snuh.metrics import Evaluation

EXAMPLES = (
    "snuh encode model tickets.jsonl --out codes.parquet",
    "cat new.jsonl | snuh encode model - --out codes.jsonl",
)
EVALUATE_EXAMPLES = (
    "snuh evaluate model tickets.jsonl",
    "snuh evaluate model tickets.jsonl --cutoffs 10,100 --json",
    "snuh evaluate model tickets.jsonl --query-split val",
)


def encode(
    model: ModelFolder,
    source: Source,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Output file: .parquet, .npy or .jsonl.")],
    text_field: TextField = "text",
    id_field: IdField = "id",
    as_json: Json = False,
) -> None:
    """Encode documents and write their ids and codes to a file.

    .parquet has the columns id (string) and code (binary). .jsonl has "id" and "code" (hexadecimal) on each
    line. .npy is a uint8 array with one row per document; the ids go to a JSON list with the suffix
    .ids.json. An existing file is replaced once the new one is complete.
    """
    import time

    from snuh.cli.base_command import say
    from snuh.cli.output import (
        check_no_source,
        check_writable,
        display,
        open_documents,
        plural,
        print_facts,
        print_json,
    )
    from snuh.cli.writers import code_files, code_writer
    from snuh.encoding import encode_source
    from snuh.model import load

    started = time.perf_counter()
    for file in code_files(out):
        check_writable(file)
        check_no_source(file, source)
    loaded = load(model)
    documents = open_documents(source, text_field=text_field, id_field=id_field)
    count = unknown = 0
    with display() as progress, code_writer(out, bits=loaded.bits) as write:
        for batch in encode_source(loaded, documents, progress=progress.stage("Encoding")):
            write([document.id for document in batch.documents], batch.codes)
            count += len(batch.documents)
            unknown += int((~batch.known).sum())
    if unknown:
        total = plural(count, "document")
        say(f"warning: {unknown:,} of {total} have no known word: all of them get the same code")
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


def evaluate(
    model: ModelFolder,
    source: Source,
    cutoffs: Annotated[
        str | None,
        typer.Option(metavar="K,K,...", help="Cutoffs k of precision@k (default: 1,10,50,100,1000)."),
    ] = None,
    query_split: Annotated[str, typer.Option(metavar="SPLIT", help="Split of the queries.")] = "test",
    database_split: Annotated[
        str, typer.Option(metavar="SPLIT", help="Split of the documents to search.")
    ] = "train",
    text_field: TextField = "text",
    id_field: IdField = "id",
    as_json: Json = False,
) -> None:
    """Evaluate a model: how well its codes retrieve documents with the same labels.

    Each test document is a query against the train documents, which include documents without a split. A hit
    is relevant if it shares a label with the query. Precision is its expectation over random orders of ties.
    """
    from snuh.cli.output import display, open_documents, print_json
    from snuh.encoding import encode_source
    from snuh.evaluation import evaluate_splits
    from snuh.model import load

    parsed_cutoffs = _parse_cutoffs(cutoffs)
    loaded = load(model)
    documents = open_documents(source, text_field=text_field, id_field=id_field)
    with display() as progress:
        evaluation = evaluate_splits(
            encode_source(loaded, documents, progress=progress.stage("Encoding")),
            name=documents.name,
            query_split=query_split,
            database_split=database_split,
            cutoffs=parsed_cutoffs,
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
    else:
        _print_evaluation(summary, evaluation)


def _parse_cutoffs(text: str | None) -> Sequence[int] | None:
    from snuh.errors import InputError

    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise InputError(f'--cutoffs must be positive integers, such as 10,100, got "{text}"')
    return sorted({int(part) for part in parts})


def _print_evaluation(summary: dict[str, Any], evaluation: Evaluation) -> None:
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
        f"precision; {evaluation.empty_radius_fraction:.0%} of the queries have no document there",
    )
    distinct = health.distinct_codes / health.documents
    table.add_row("distinct codes", f"{health.distinct_codes:,}", f"{distinct:.0%} of the documents")
    table.add_row(
        "largest bucket", f"{health.largest_bucket_fraction:.2%}", "of the documents share one code"
    )
    ones = health.ones_fraction
    constant = f"; {plural(health.constant_bits, 'constant bit')}" if health.constant_bits else ""
    table.add_row("bit balance", f"{min(ones):.2f}–{max(ones):.2f}", f"fraction of ones per bit{constant}")
    correlation = "none" if health.bit_correlation is None else f"{health.bit_correlation:.4f}"
    table.add_row("bit correlation", correlation, "mean absolute value over pairs of bits")
    console = results_console()
    console.print(
        f"[bold]{summary['method']}[/bold], {summary['bits']} bits: "
        f"{plural(evaluation.queries, 'query', 'queries')} ({summary['query_split']}) "
        f"against {plural(health.documents, 'document')} ({summary['database_split']}) of {summary['source']}"
    )
    if evaluation.queries_without_labels:
        skipped = plural(evaluation.queries_without_labels, "document")
        console.print(f"{skipped} of {summary['query_split']} without labels skipped", style="dim")
    console.print(table)
    if not health.alive:
        console.print("The codes are dead: they hardly distinguish documents.", style="bold red")
