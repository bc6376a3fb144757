"""Adding documents to a collection, with progress and a summary."""

from __future__ import annotations

from typing import Any

import typer

from snuh.cli.base_command import EXIT_INTERRUPTED, say
from snuh.cli.output import display, plural
from snuh.collection import Added, Collection
from snuh.corpus import TextSource
from snuh.errors import InputError


def check_max_characters(max_characters: int) -> None:
    """Raise InputError for a limit below one character."""
    if max_characters < 1:
        raise InputError(f"--max-characters must be at least 1, got {max_characters}")


def ingest(collection: Collection, source: TextSource, *, max_characters: int) -> Added:
    """Add the documents of a source; on Ctrl-C exit 130 and keep the documents added so far."""
    try:
        with display() as progress:
            added = collection.add(source.documents(progress.stage("Adding")), max_characters=max_characters)
    except KeyboardInterrupt:
        documents = plural(len(collection), "document")
        say(f"interrupted: documents added so far are kept, {collection.name} now has {documents}")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    if added.without_code:
        total = plural(added.inserted + added.replaced, "document")
        say(f"warning: {added.without_code:,} of {total} have no known word: searches do not find them")
    return added


def added_to_json(added: Added) -> dict[str, Any]:
    """Return the counts as a JSON object."""
    return {
        "inserted": added.inserted,
        "replaced": added.replaced,
        "without_known_words": added.without_code,
    }


def added_facts(added: Added) -> list[tuple[str, str]]:
    """Return the counts as names and values to print."""
    return [
        ("inserted", f"{added.inserted:,}"),
        ("replaced", f"{added.replaced:,}"),
        ("without known words", f"{added.without_code:,}"),
    ]
