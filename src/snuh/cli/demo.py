"""`snuh demo`: everything once, on texts that every Python installation has."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snuh.cli.options import Bits, Json

if TYPE_CHECKING:
    from snuh.cli.output import Display
    from snuh.demo import DemoResult

DEFAULT_FOLDER = Path("snuh-demo")
EXAMPLES = ("snuh demo", "snuh demo --quick", "snuh demo --bits 32 --out /tmp/demo")


def demo(
    bits: Bits = 64,
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where the model, the corpus and the collection go.")
    ] = DEFAULT_FOLDER,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer texts and epochs: sooner done, rougher codes.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Learn codes for the docstrings of the installed Python packages, and search them.

    Needs no data and no network. Writes the model, the corpus and a collection to a folder, prints how often
    a docstring finds others of its own package, a few searches with their hits, and how to go on: with a page
    to explore them, for instance.
    """
    from functools import partial

    from snuh.cli.output import check_writable, display, print_json
    from snuh.cli.training import learn
    from snuh.codes import check_bits
    from snuh.corpus.reader import ProgressSource
    from snuh.demo import MODEL_FOLDER, check_folder, demo_hasher, demo_source, explore, save_demo

    check_bits(bits)
    check_folder(out)
    check_writable(out / MODEL_FOLDER)  # and so inside a folder that is there already
    source, hasher = demo_source(quick=quick), demo_hasher(bits=bits, quick=quick)

    def save() -> None:
        with display() as shown:
            shown.show("Saving the model", 0.0)
            stages = (shown.stage("Writing the docstrings"), shown.stage("Filling the collection"))
            save_demo(out, hasher, ProgressSource(source, *stages))

    model = learn(hasher, source, save=save)
    with display() as shown:
        result = explore(model, ProgressSource(source, partial(_show_reading, shown)))
    if as_json:
        print_json(_to_json(result, out))
    else:
        _print_result(result, out)


def _show_reading(shown: Display, done: float) -> None:
    shown.show("Encoding", done)
    if done >= 1.0:
        shown.show("Searching", 0.0)


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

    from snuh.cli.output import results_console, start_of
    from snuh.demo import COLLECTION_FOLDER, CORPUS_FILE, MODEL_FOLDER
    from snuh.metrics import HEADLINE_CUTOFF

    quality, console = result.quality, results_console()
    console.print(
        f"\n[bold]Quality.[/bold] {quality.queries:,} docstrings that were not trained on search "
        f"{quality.documents:,} others, of {quality.packages} packages. "
        f"Of the {HEADLINE_CUTOFF} nearest by their {quality.bits}-bit codes, "
        f"[bold green]{quality.precision:.1%}[/bold green] are of the same package; "
        f"by chance it would be {quality.chance:.1%}."
    )
    for search in result.searches:
        console.print(f"\n[bold]Search:[/bold] {search.query}")
        table = Table.grid(padding=(0, 2), expand=True)
        table.add_column(justify="right", no_wrap=True, style="dim")
        table.add_column(no_wrap=True, style="cyan", max_width=44)
        table.add_column(no_wrap=True, ratio=1)  # takes the width that the others leave
        for hit in search.hits:
            table.add_row(str(hit.distance), Text(hit.document.id), Text(start_of(hit.document.text)))
        console.print(table if search.hits else "  the model knows none of these words")
    model, corpus = folder / MODEL_FOLDER, folder / CORPUS_FILE
    collection = folder / COLLECTION_FOLDER
    steps = [
        f'snuh search {collection} "fast fourier transform" --explain',
        f"snuh evaluate {model} {corpus}",
        f"snuh encode {model} {corpus} --out codes.parquet",
        "snuh fit your-documents.jsonl --out your-model",
    ]
    console.print(
        f"\nThe model is in {model}, the docstrings are in {corpus}, and all of it to be searched is in "
        f"{collection}. Go on with:",
        markup=False,
        soft_wrap=True,
    )
    for step in steps:
        console.print(Text(f"  {step}", style="cyan"), soft_wrap=True)
    console.print("\nTo search and explore them on a page, with a map of all docstrings, run")
    console.print(Text(f"  snuh serve {collection}", style="cyan"), soft_wrap=True)
    console.print("and open http://127.0.0.1:8765 in a browser.", markup=False)
