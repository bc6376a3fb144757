"""`snuh dedup`: documents that repeat another one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from snuh.cli.options import IdField, Json, Source, TextField

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snuh.corpus import Document, TextSource
    from snuh.dedup import Keep, Measure
    from snuh.model import Model

EXAMPLES = (
    "snuh dedup tickets",
    "snuh dedup tickets --threshold 0.9 --keep longest --drop",
    "snuh dedup tickets.jsonl --model model --out duplicates.csv",
)


def dedup(
    source: Source,
    model: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="Makes the codes; a collection has its own.")
    ] = None,
    radius: Annotated[
        int | None, typer.Option(metavar="N", help="The most bits in which two duplicates differ.")
    ] = None,
    threshold: Annotated[
        float, typer.Option(metavar="X", help="The least similarity of two duplicates, up to 1.")
    ] = 0.85,
    measure: Annotated[
        str, typer.Option(metavar="NAME", help="cosine of the weighed words, or overlap of the words.")
    ] = "cosine",
    group_by: Annotated[
        str | None, typer.Option(metavar="FIELD", help="Compare only documents that agree in this field.")
    ] = None,
    target: Annotated[
        int | None, typer.Option(metavar="N", help="Keep N documents: only the most similar go.")
    ] = None,
    keep: Annotated[str, typer.Option(metavar="WHICH", help="first, last or longest.")] = "first",
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A line for each duplicate: .jsonl or .csv.")
    ] = None,
    drop: Annotated[bool, typer.Option("--drop", help="Delete the duplicates from the collection.")] = False,
    text_field: TextField = "text",
    id_field: IdField = "id",
    as_json: Json = False,
) -> None:
    """Find documents that repeat another one, in a collection or in any source.

    Prints how many there are and the biggest clusters; --out writes all of them. Nothing is deleted without
    --drop. For a source without --model, 64-bit codes are learnt first, which needs PyTorch.
    """
    from snuh.cli.output import (
        check_no_source,
        check_writable,
        display,
        holds_collection,
        open_texts,
        print_json,
    )
    from snuh.cli.render import check_out, print_report, report_to_json, write_report
    from snuh.collection import Collection
    from snuh.dedup import deduplicate
    from snuh.errors import InputError
    from snuh.urls import redact

    if drop and not holds_collection(source):
        raise InputError(f"--drop deletes from a collection, and {source} is none: use --out")
    if out is not None:
        check_out(out)
        check_writable(out)
        check_no_source(out, source)
    documents = open_texts(source, text_field=text_field, id_field=id_field)
    used = _model(source, model, documents)
    with display() as bars:

        def read() -> Iterator[Document]:
            yield from _with_field(documents.documents(bars.stage("Encoding")), group_by, documents.name)
            bars.show("Comparing", 0.0)

        report = deduplicate(
            used,
            read(),
            radius=radius,
            threshold=threshold,
            measure=cast("Measure", measure),
            group_by=group_by,
            target=target,
            keep=cast("Keep", keep),
        )
    if out is not None:
        write_report(out, report)
    deleted = 0
    if drop:
        with Collection(source) as collection:
            deleted = collection.delete(one.id for one in report.duplicates if not one.keep)
    if as_json:
        told = {"source": redact(source), "file": None if out is None else str(out), "deleted": deleted}
        print_json(told | report_to_json(report))
    else:
        print_report(report, out=out, deleted=deleted if drop else None)


def _model(spec: str, model: Path | None, documents: TextSource) -> Model:
    """Load the model, that of the collection where none is named; learn one for any other source."""
    from snuh.cli.output import holds_collection
    from snuh.collection import Collection
    from snuh.model import load

    if model is not None:
        return load(model)
    if holds_collection(spec):
        with Collection(spec) as collection:
            return collection.model
    from snuh.cli.base_command import say
    from snuh.cli.training import learn, make_hasher

    say("no --model: learning 64-bit codes first")
    return learn(make_hasher(), documents, save=lambda: None)


def _with_field(documents: Iterator[Document], field: str | None, name: str) -> Iterator[Document]:
    """Yield documents; InputError at the end where none of them has the field."""
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
