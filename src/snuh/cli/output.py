"""Results on stdout: tables for people, JSON for machines; and looking at a place before slow work starts."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import typer

from snuh.cli.sources import holds_collection
from snuh.corpus.source import source_path
from snuh.errors import InputError
from snuh.storage import dump_json, is_model

if TYPE_CHECKING:
    from rich.console import Console

    from snuh.search import Hit

WIDTH_WITHOUT_TERMINAL = 120
LINE_CHARACTERS = 500  # more than any terminal is wide
SCORE = "how much of what one half of a document is about the code of the other half finds"


def print_json(value: object) -> None:
    """Print one JSON object."""
    typer.echo(dump_json(value, indent=2))


def duration(seconds: float) -> str:
    """Write a time for people, in the unit that suits it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"


def results_console() -> Console:
    """Return a console on stdout, of a fixed width where stdout is no terminal and COLUMNS is not set."""
    from rich.console import Console

    is_free = not sys.stdout.isatty() and not os.environ.get("COLUMNS", "").isdigit()
    # Highlighting would colour every number in the texts of documents.
    return Console(width=WIDTH_WITHOUT_TERMINAL if is_free else None, highlight=False)


def print_facts(facts: Sequence[tuple[str, str]]) -> None:
    """Print names and values in two columns."""
    from rich.text import Text

    console = results_console()
    width = max(len(name) for name, _ in facts) + 2
    for name, value in facts:
        console.print(Text.assemble((name.ljust(width), "dim"), value), soft_wrap=True)


def print_steps(steps: Sequence[str]) -> None:
    """Print what to type next."""
    from rich.text import Text

    console = results_console()
    console.print("\nGo on with:")
    for step in steps:
        console.print(Text(f"  {step}", style="cyan"), soft_wrap=True)


def check_place(path: Path) -> None:
    """Raise InputError where nothing can be written at `path`, before the work is done for nothing."""
    for folder in path.resolve().parents:
        kind = "a model" if is_model(folder) else "a collection" if holds_collection(folder) else ""
        if kind:
            raise InputError(
                f"cannot write {path}: {folder} is {kind}, which nothing else may be in: choose another place"
            )
    wanted = path.resolve()
    while not os.path.lexists(wanted.parent):
        wanted = wanted.parent
    if not wanted.parent.is_dir():
        raise InputError(f"cannot write {path}: {wanted.parent} is not a folder")
    try:
        # Permissions do not tell all: nobody can make anything in /proc, and a name may be too long.
        with TemporaryDirectory(prefix=f".{wanted.name}.", dir=wanted.parent):
            pass
    except OSError as error:
        raise InputError(
            f"cannot write {path}: nothing can be made in the folder {wanted.parent} "
            f"({error.strerror or error}): choose another place"
        ) from None


def check_no_source(path: Path, source: str) -> None:
    """Raise InputError where writing `path` would replace the source that is read."""
    read = source_path(source)
    # By what they are, not by their names: either may be a link.
    if read is not None and os.path.exists(path) and os.path.exists(read) and path.samefile(read):
        raise InputError(f"cannot write {path}: it is the source, which would be lost: choose another file")


def hit_to_json(hit: Hit) -> dict[str, Any]:
    """Return plain values for JSON, with the first line of the text."""
    document = hit.document
    score = {} if hit.score is None else {"score": hit.score}
    return {
        "distance": hit.distance,
        **score,
        "id": document.id,
        "labels": list(document.labels),
        "metadata": document.metadata,
        "text": first_line(document.text),
    }


def start_of(text: str) -> str:
    """Return what fills a line, also behind a title of few words, its spaces evened out."""
    return " ".join(text[: 4 * LINE_CHARACTERS].split())[:LINE_CHARACTERS]


def first_line(text: str) -> str:
    """Return the first line with something on it, its spaces evened out."""
    return next((" ".join(line.split()) for line in text.splitlines() if line.strip()), "")


def plural(count: int, noun: str) -> str:
    """Return '1 document' or '1,234 documents'."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
