"""What takes long, in a process of its own: python -m snuh.server.making KIND OUT LOCK SECONDS OPTIONS.

It ends with its standard input, and after so many seconds.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from snuh.collection import Collection
from snuh.collection.describing import fast_to_json
from snuh.dedup import Duplicate, deduplicate
from snuh.errors import InputError, SnuhError, suggest
from snuh.server.parent import end_with_input
from snuh.server.plane import place_codes
from snuh.server.titles import title_of
from snuh.storage import atomic_write, write_json

ADDRESS = "SNUH_MAKING"  # the variable that names the collection: everyone may see the arguments of a process
FORMAT_VERSION = 1
MOST_POINTS = 10_000
CLUSTERS, OF_EACH = 100, 100
NICENESS = 5  # searches go first
EXIT_INPUT, EXIT_OTHER = 2, 3  # what whoever asked can mend, and what they cannot


def make_map(collection: Collection) -> dict[str, Any]:
    """Place a sample of the documents in the plane."""
    sample = collection.sample(MOST_POINTS)
    places = place_codes(sample.codes).round(4)
    documents = sample.documents
    return {
        "documents": len(collection),
        "ids": [document.id for document in documents],
        "x": places[:, 0].tolist(),
        "y": places[:, 1].tolist(),
        "titles": [title_of(document) for document in documents],
        "labels": [document.labels[0] if document.labels else None for document in documents],
    }


def make_duplicates(collection: Collection, **options: Any) -> dict[str, Any]:
    """Find duplicates, and tell of the biggest clusters."""
    known = ["labels", "split", *collection.info().fields]
    if (field := options.get("group_by")) is not None and field not in known:
        raise InputError(f'no document has a field "{field}"{suggest(field, known)}')
    report = deduplicate(collection.model, collection.documents(), **options)
    clusters = report.biggest(CLUSTERS)
    biggest = [[_described(collection, one) for one in cluster[:OF_EACH]] for cluster in clusters]
    return {**report.summary(), "biggest": biggest}


def _described(collection: Collection, one: Duplicate) -> dict[str, Any]:
    title = title_of(collection.get(one.id)) if one.id in collection else ""
    return {**one.to_json(), "similarity": round(one.similarity, 6), "title": title}


def make_lists(collection: Collection, **options: Any) -> dict[str, Any]:
    """Prepare fast searches, as `snuh index` does."""
    made = collection.make_lists(**options)
    return {**fast_to_json(made), "words": made.words}


KINDS: dict[str, Callable[..., dict[str, Any]]] = {
    "map": make_map,
    "duplicates": make_duplicates,
    "lists": make_lists,
}


def make(kind: str, address: str, out: Path, options: dict[str, Any]) -> None:
    """Write what was asked for as JSON, with the version of the collection that it was made of."""
    with Collection(address) as collection:
        stamp = {"format": FORMAT_VERSION, "version": collection.version()}
        made = KINDS[kind](collection, **options)
    with atomic_write(out) as beside:
        write_json(beside, {**stamp, **made})


def main(kind: str, out: str, lock: str, seconds: str, options: str) -> None:
    """Make it, unless another process makes the same just now."""
    end_with_input(EXIT_OTHER)
    signal.alarm(int(seconds))
    os.nice(NICENESS)
    with open(lock, "w", encoding="utf-8") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(held, fcntl.LOCK_EX)  # it is made once the other one lets go
            return
        try:
            make(kind, os.environ[ADDRESS], Path(out), json.loads(options))
        finally:
            Path(lock).unlink(missing_ok=True)  # whoever waits for it has it open


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except SnuhError as error:
        sys.stderr.write(" ".join(str(error).split()) + "\n")
        sys.exit(EXIT_INPUT if isinstance(error, InputError) else EXIT_OTHER)
