"""Putting documents into a collection, with progress, and telling what happened to them."""

from __future__ import annotations

from typing import Any

import typer

from snuh.cli.base_command import EXIT_INTERRUPTED, say
from snuh.cli.output import display, plural
from snuh.collection import Added, Collection
from snuh.corpus import TextSource
from snuh.errors import InputError


def check_limit(max_characters: int) -> None:
    """Raise InputError for a limit that no text could keep to."""
    if max_characters < 1:
        raise InputError(f"--max-characters must be at least 1, got {max_characters}")


def fill(collection: Collection, source: TextSource, *, max_characters: int) -> Added:
    """Add the documents of a source; exit 130 on Ctrl-C, with what was added until then kept."""
    try:
        with display() as shown:
            added = collection.add(source.documents(shown.stage("Adding")), max_characters=max_characters)
    except KeyboardInterrupt:
        kept = plural(len(collection), "document")
        say(f"interrupted: what was added is kept, {collection.name} now has {kept}")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    if added.without_code:
        every = plural(added.inserted + added.replaced, "document")
        say(
            f"warning: {added.without_code:,} of {every} have no word that the model knows: "
            "searches do not find them"
        )
    return added


def added_to_json(added: Added) -> dict[str, Any]:
    """Return plain values for JSON."""
    return {
        "inserted": added.inserted,
        "replaced": added.replaced,
        "without_known_words": added.without_code,
    }


def added_facts(added: Added) -> list[tuple[str, str]]:
    """Return names and values for people."""
    return [
        ("inserted", f"{added.inserted:,}"),
        ("replaced", f"{added.replaced:,}"),
        ("without any known word", f"{added.without_code:,}"),
    ]
