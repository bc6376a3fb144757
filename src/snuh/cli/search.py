"""`snuh search`: the documents nearest to a text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from snuh.cli.options import IdField, Json, Source, TextField

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snuh.search import Hit

EXAMPLES = (
    'snuh search tickets.jsonl "printer is on fire" --model model',
    'snuh search tickets.jsonl "printer is on fire" --model model -k 3 --json',
)


def search(
    source: Source,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to look for.")],
    model: Annotated[Path, typer.Option(metavar="MODEL", help='A model folder made by "snuh fit".')],
    k: Annotated[int, typer.Option("-k", metavar="N", help="How many documents to show.")] = 10,
    text_field: TextField = "text",
    id_field: IdField = "id",
    as_json: Json = False,
) -> None:
    """Show the documents whose codes are nearest to a text's.

    The distance is the number of bits that differ; documents at the same distance keep their order in the
    source. Documents without any word that the model knows are left out.
    """
    from snuh.cli.display import display
    from snuh.cli.output import hit_to_json, print_json
    from snuh.corpus import open_source
    from snuh.encoding import encode_source
    from snuh.errors import InputError
    from snuh.model import load
    from snuh.search import encode_query, nearest_hits

    if k < 1:
        raise InputError(f"-k must be at least 1, got {k}")
    loaded = load(model)
    query = encode_query(loaded, text)
    documents = open_source(source, text_field=text_field, id_field=id_field)
    with display() as shown:
        batches = encode_source(loaded, documents, progress=shown.stage("Searching"))
        hits = nearest_hits(query, batches, k=k)
    if as_json:
        print_json({"query": text, "bits": loaded.bits, "hits": [hit_to_json(hit) for hit in hits]})
    else:
        print_hits(hits)


def print_hits(hits: Sequence[Hit]) -> None:
    """Print hits as a table, one line each."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from snuh.cli.output import first_line, results_console

    has_labels = any(hit.document.labels for hit in hits)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=True)
    table.add_column("distance", justify="right", no_wrap=True)
    table.add_column("id", no_wrap=True, style="cyan", max_width=48)
    if has_labels:
        table.add_column("labels", no_wrap=True, style="green", max_width=24)
    table.add_column("text", no_wrap=True, ratio=1)  # takes the width that the others leave
    for hit in hits:
        labels = [Text(", ".join(hit.document.labels))] if has_labels else []
        line = Text(first_line(hit.document.text)[:500])
        table.add_row(str(hit.distance), Text(hit.document.id), *labels, line)
    results_console().print(table)
