"""`snuh export`: the documents of a collection, as a file that every other command reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from snuh.cli.options import CollectionAddress, IdField, Json, TextField, Where

if TYPE_CHECKING:
    from snuh.collection import Collection
    from snuh.corpus import Document, Progress
    from snuh.model import Model

EXAMPLES = (
    "snuh export tickets --out tickets.jsonl.gz",
    "snuh export tickets --out recent.parquet --where 'year >= 2020'",
    "snuh export tickets --out tickets.csv --codes",
)
DOCUMENTS_PER_REPORT = 256


def export(
    collection: CollectionAddress,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="A file ending in .jsonl, .jsonl.gz, .parquet or .csv.")
    ],
    where: Where = None,
    codes: Annotated[bool, typer.Option("--codes", help="Add the code of each, in hexadecimal.")] = False,
    text_field: TextField = "text",
    id_field: IdField = "id",
    as_json: Json = False,
) -> None:
    """Write the documents of a collection to a file, in order of insertion.

    "snuh add", "snuh fit" and the others read it back. Only JSON lines keep all metadata as they are: a cell
    of a table holds a list or an object as JSON text. An existing file is replaced once the new one is
    complete.
    """
    from snuh.addresses import shown
    from snuh.cli.display import display
    from snuh.cli.output import check_place, print_facts, print_json
    from snuh.cli.records import Layout, check_suffix, open_writer
    from snuh.collection import Collection

    check_suffix(out)
    check_place(out)
    layout = Layout(text_field, id_field, has_codes=codes)
    count = 0
    with Collection(collection) as opened, display() as bars:
        look = _documents(opened, where, bars.stage("Looking at the fields"))
        with open_writer(out, layout, lambda: look) as write:
            documents = _documents(opened, where, bars.stage("Writing"))
            for document, code in _with_codes(opened.model, documents, wanted=codes):
                write(document, code)
                count += 1
    if as_json:
        print_json({"collection": shown(collection), "file": str(out), "documents": count})
    else:
        print_facts([("file", str(out)), ("documents", f"{count:,}")])


def _documents(collection: Collection, where: str | None, progress: Progress) -> Iterator[Document]:
    total = max(1, len(collection))
    for count, document in enumerate(collection.documents(where=where)):
        if count % DOCUMENTS_PER_REPORT == 0:
            progress(min(1.0, count / total))
        yield document
    progress(1.0)


def _with_codes(
    model: Model, documents: Iterable[Document], *, wanted: bool
) -> Iterator[tuple[Document, str | None]]:
    """Yield documents with their codes; None for one without any word that the model knows."""
    from snuh.encoding import encode_documents

    if not wanted:
        yield from ((document, None) for document in documents)
        return
    for batch in encode_documents(model, documents):
        for document, code, known in zip(batch.documents, batch.codes, batch.known, strict=True):
            yield document, code.tobytes().hex() if known else None
