"""`snuh dedup`: find near-duplicate documents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from snuh.cli.base_command import IdField, Json, Source, TextField

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snuh.corpus import Document, TextSource
    from snuh.dedup import DuplicateReport, Keep, Measure
    from snuh.model import Model

EXAMPLES = (
    "snuh dedup tickets",
    "snuh dedup tickets --threshold 0.9 --keep longest --drop",
    "snuh dedup tickets.jsonl --model model --out duplicates.csv",
)
COLUMNS = ("id", "action", "cluster", "representative", "similarity", "distance")
MAX_CLUSTERS_SHOWN, MAX_DUPLICATES_SHOWN = 10, 4


def dedup(
    source: Source,
    model: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="Model to encode with; a collection has its own.")
    ] = None,
    radius: Annotated[
        int | None, typer.Option(metavar="N", help="Maximum Hamming distance of two duplicates.")
    ] = None,
    threshold: Annotated[
        float, typer.Option(metavar="X", help="Minimum similarity of two duplicates, up to 1.")
    ] = 0.85,
    measure: Annotated[
        str, typer.Option(metavar="NAME", help="Similarity: cosine of TF-IDF rows, or overlap of words.")
    ] = "cosine",
    group_by: Annotated[
        str | None, typer.Option(metavar="FIELD", help="Compare only documents with equal values here.")
    ] = None,
    target: Annotated[
        int | None, typer.Option(metavar="N", help="Keep N documents: drop the most similar first.")
    ] = None,
    keep: Annotated[
        str, typer.Option(metavar="WHICH", help="Which document to keep: first, last or longest.")
    ] = "first",
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write all duplicates to a .jsonl or .csv file.")
    ] = None,
    drop: Annotated[bool, typer.Option("--drop", help="Delete the duplicates from the collection.")] = False,
    text_field: TextField = "text",
    id_field: IdField = "id",
    as_json: Json = False,
) -> None:
    """Find near-duplicate documents in a collection or a source.

    Prints their number and the largest clusters; --out writes all of them. Nothing is deleted without --drop.
    For a source without --model, a 64-bit model is trained first, which needs PyTorch.
    """
    from snuh.cli.output import (
        check_no_source,
        check_writable,
        display,
        holds_collection,
        open_texts,
        print_json,
    )
    from snuh.cli.writers import DUPLICATE_SUFFIXES, check_suffix, write_records
    from snuh.collection import Collection
    from snuh.dedup import deduplicate
    from snuh.errors import InputError
    from snuh.io import redact

    if drop and not holds_collection(source):
        raise InputError(f"--drop deletes from a collection, and {source} is not one: use --out")
    if out is not None:
        check_suffix(out, DUPLICATE_SUFFIXES, what="duplicates")
        check_writable(out)
        check_no_source(out, source)
    documents = open_texts(source, text_field=text_field, id_field=id_field)
    used_model = _load_or_train(source, model, documents)
    with display() as progress:

        def read() -> Iterator[Document]:
            yield from _with_field(documents.documents(progress.stage("Encoding")), group_by, documents.name)
            progress.show("Comparing", 0.0)

        report = deduplicate(
            used_model,
            read(),
            radius=radius,
            threshold=threshold,
            measure=cast("Measure", measure),
            group_by=group_by,
            target=target,
            keep=cast("Keep", keep),
        )
    if out is not None:
        write_records(out, (duplicate.to_json() for duplicate in report.duplicates), columns=COLUMNS)
    deleted = 0
    if drop:
        with Collection(source) as collection:
            deleted = collection.delete(duplicate.id for duplicate in report.duplicates if not duplicate.keep)
    if as_json:
        summary = {"source": redact(source), "file": None if out is None else str(out), "deleted": deleted}
        clusters = report.largest(MAX_CLUSTERS_SHOWN)
        largest = [[duplicate.to_json() for duplicate in cluster] for cluster in clusters]
        print_json({**summary, **report.summary(), "largest": largest})
    else:
        _print_report(report, out=out, deleted=deleted if drop else None)


def _load_or_train(spec: str, model: Path | None, documents: TextSource) -> Model:
    """Load the given model or that of the collection; train one for any other source."""
    from snuh.cli.output import holds_collection
    from snuh.collection import Collection
    from snuh.model import load

    if model is not None:
        return load(model)
    if holds_collection(spec):
        with Collection(spec) as collection:
            return collection.model
    from snuh.cli.base_command import say
    from snuh.cli.training import make_hasher, train

    say("no --model given: training a 64-bit model first")
    return train(make_hasher(), documents, save=lambda: None)


def _with_field(documents: Iterator[Document], field: str | None, name: str) -> Iterator[Document]:
    """Yield documents; at the end, raise InputError if none of them has the field."""
    from snuh.errors import InputError, suggest

    fields = {"labels", "split"}
    for document in documents:
        fields.update(document.metadata)
        yield document
    if field is not None and field not in fields:
        known = sorted(fields)
        raise InputError(
            f'no document of {name} has a field "{field}"{suggest(field, known)}: '
            f"expected one of {', '.join(known)}"
        )


def _print_report(report: DuplicateReport, *, out: Path | None, deleted: int | None) -> None:
    """Print the summary and the largest clusters."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from snuh.cli.output import plural, print_facts, results_console
    from snuh.text import sanitize

    fraction = report.dropped / max(1, report.documents)
    facts = [
        ("documents", f"{report.documents:,}"),
        ("duplicates", f"{report.dropped:,} ({fraction:.1%}), in {plural(report.clusters, 'cluster')}"),
        ("criteria", f"distance up to {report.radius} bits, similarity from {report.threshold:.3g}"),
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
    table.add_column("duplicates", no_wrap=True, ratio=1)
    for cluster in report.largest(MAX_CLUSTERS_SHOWN):
        dropped = [duplicate.id for duplicate in cluster if not duplicate.keep]
        ids = ", ".join(dropped[:MAX_DUPLICATES_SHOWN])
        if len(dropped) > MAX_DUPLICATES_SHOWN:
            ids += ", ..."
        lowest = min(duplicate.similarity for duplicate in cluster)
        table.add_row(
            str(len(cluster)), Text(sanitize(cluster[0].id)), f"from {lowest:.2f}", Text(sanitize(ids))
        )
    results_console().print(table)
