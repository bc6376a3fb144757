"""`snuh encode`: codes for documents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

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

    from snuh.cli.display import display
    from snuh.cli.group import say
    from snuh.cli.output import check_no_source, check_place, plural, print_facts, print_json
    from snuh.cli.sources import open_documents
    from snuh.cli.writers import files_of, open_writer
    from snuh.encoding import encode_source
    from snuh.model import load

    started = time.perf_counter()
    for file in files_of(out):
        check_place(file)
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
