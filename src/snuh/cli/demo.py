"""`snuh demo`: train, evaluate and search on docstrings, which every Python installation has."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snuh.cli.base_command import Bits, Json

if TYPE_CHECKING:
    from snuh.cli.output import Display
    from snuh.demo import DemoResult

DEFAULT_FOLDER = Path("snuh-demo")
EXAMPLES = ("snuh demo", "snuh demo --quick", "snuh demo --bits 32 --out /tmp/demo")


def demo(
    bits: Bits = 64,
    out: Annotated[
        Path,
        typer.Option(metavar="FOLDER", help="Output folder for the model, the corpus and the collection."),
    ] = DEFAULT_FOLDER,
    quick: Annotated[
        bool, typer.Option("--quick", help="Use fewer documents and epochs: faster, with worse codes.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Try snuh on the docstrings of the installed Python packages.

    Needs no data and no network. Trains a model, writes it with the corpus and a collection to a folder, and
    prints the quality of the codes, a few searches, and commands to try next.
    """
    from functools import partial

    from snuh.cli.output import check_writable, display, print_json
    from snuh.cli.training import train
    from snuh.codes import check_bits
    from snuh.corpus.reader import ProgressSource
    from snuh.demo import MODEL_FOLDER, check_folder, demo_hasher, demo_source, explore, save_demo

    check_bits(bits)
    check_folder(out)
    check_writable(out / MODEL_FOLDER)
    source, hasher = demo_source(quick=quick), demo_hasher(bits=bits, quick=quick)

    def save() -> None:
        with display() as progress:
            progress.show("Saving the model", 0.0)
            stages = (progress.stage("Writing the docstrings"), progress.stage("Creating the collection"))
            save_demo(out, hasher, ProgressSource(source, *stages))

    train(hasher, source, save=save)
    with display() as progress:
        result = explore(out, ProgressSource(source, partial(_show_encoding, progress)))
    if as_json:
        print_json(_to_json(result, out))
    else:
        _print_result(result, out)


def _show_encoding(progress: Display, done: float) -> None:
    progress.show("Encoding", done)
    if done >= 1.0:
        progress.show("Searching", 0.0)


def _to_json(result: DemoResult, folder: Path) -> dict[str, Any]:
    from dataclasses import asdict

    from snuh.cli.output import hit_to_json
    from snuh.demo import COLLECTION_FOLDER, CORPUS_FILE, MODEL_FOLDER

    searches = [
        {"query": search.query, "hits": [hit_to_json(hit) for hit in search.hits]}
        for search in result.searches
    ]
    paths = {
        "model": str(folder / MODEL_FOLDER),
        "corpus": str(folder / CORPUS_FILE),
        "collection": str(folder / COLLECTION_FOLDER),
    }
    return {**paths, "quality": asdict(result.quality), "searches": searches}


def _print_result(result: DemoResult, folder: Path) -> None:
    from rich.table import Table
    from rich.text import Text

    from snuh.cli.output import line_of_text, results_console
    from snuh.demo import COLLECTION_FOLDER, CORPUS_FILE, MODEL_FOLDER
    from snuh.metrics import HEADLINE_CUTOFF

    quality, console = result.quality, results_console()
    console.print(
        f"\n[bold]Quality.[/bold] {quality.queries:,} test docstrings were used as queries against "
        f"{quality.documents:,} training docstrings of {quality.packages} packages. "
        f"Of the {HEADLINE_CUTOFF} nearest by {quality.bits}-bit codes, "
        f"[bold green]{quality.precision:.1%}[/bold green] belong to the same package; "
        f"with random codes it would be {quality.random_precision:.1%}."
    )
    for search in result.searches:
        console.print(f"\n[bold]Search:[/bold] {search.query}")
        table = Table.grid(padding=(0, 2), expand=True)
        table.add_column(justify="right", no_wrap=True, style="dim")
        table.add_column(no_wrap=True, style="cyan", max_width=44)
        table.add_column(no_wrap=True, ratio=1)  # takes the remaining width
        for hit in search.hits:
            table.add_row(f"{hit.score:.1f}", Text(hit.document.id), Text(line_of_text(hit.document.text)))
        console.print(table if search.hits else f"  {search.hits.note}")
    model, corpus = folder / MODEL_FOLDER, folder / CORPUS_FILE
    collection = folder / COLLECTION_FOLDER
    steps = [
        f'snuh search {collection} "fast fourier transform" --explain',
        f"snuh evaluate {model} {corpus}",
        f"snuh encode {model} {corpus} --out codes.parquet",
        "snuh fit your-documents.jsonl --out your-model",
    ]
    console.print(
        f"\nThe model is in {model}, the docstrings are in {corpus}, and a collection to search is in "
        f"{collection}. Next steps:",
        markup=False,
        soft_wrap=True,
    )
    for step in steps:
        console.print(Text(f"  {step}", style="cyan"), soft_wrap=True)
    console.print("\nTo search and explore the docstrings in a browser, run")
    console.print(Text(f"  snuh serve {collection}", style="cyan"), soft_wrap=True)
    console.print("and open http://127.0.0.1:8765.", markup=False)
