"""`snuh rehash`: codes of another model for a collection."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from snuh.cli.options import CollectionAddress, Json

EXAMPLES = ("snuh fit tickets --out better --bits 128", "snuh rehash tickets --model better")


def rehash(
    collection: CollectionAddress,
    model: Annotated[Path, typer.Option(metavar="MODEL", help='A model folder made by "snuh fit".')],
    as_json: Json = False,
) -> None:
    """Encode all documents of a collection anew, with another model.

    Searches go on with the old codes until all new ones are there; a stop at any point leaves the old ones in
    use. The model is copied into the collection.
    """
    import time

    from snuh.addresses import shown
    from snuh.cli.display import display
    from snuh.cli.output import print_facts, print_json
    from snuh.collection import Collection
    from snuh.model import load

    started = time.perf_counter()
    with Collection(collection) as opened:
        loaded = load(model)
        before = opened.model.bits
        with display() as bars:
            opened.rehash(loaded, progress=bars.stage("Rehashing"))
        count = len(opened)
    seconds = time.perf_counter() - started
    if as_json:
        told = {"collection": shown(collection), "method": loaded.method, "bits": loaded.bits}
        print_json(told | {"bits_before": before, "documents": count, "seconds": round(seconds, 3)})
    else:
        facts = [("collection", shown(collection)), ("documents", f"{count:,}")]
        facts.append(("codes", f"{loaded.bits} bits of {loaded.method} (before: {before} bits)"))
        print_facts([*facts, ("seconds", f"{seconds:.1f}")])
