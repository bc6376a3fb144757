"""What takes long, in a process of its own: python -m snuh.server.job_runner KIND OUT LOCK SECONDS OPTIONS.

It ends with its standard input, and after so many seconds.
"""

from __future__ import annotations

import fcntl
import json
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snuh.codes import unpack
from snuh.collection import Collection
from snuh.collection.results import index_to_json
from snuh.corpus import Document
from snuh.dedup import Duplicate, deduplicate
from snuh.errors import InputError, MissingExtraError, SnuhError, suggest
from snuh.io import atomic_write, write_json

# Processes that do not outlive the one that started them, however that one ends.

STANDARD_INPUT = 0


def end_with_parent() -> None:
    """Ask this worker process to end, as SIGTERM does, once the process that started it is gone."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def wait() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()


def end_with_input(code: int) -> None:
    """Stop this process at once when its standard input ends: whoever holds the other end is gone."""

    def wait() -> None:
        os.read(STANDARD_INPUT, 1)  # unbuffered: a thread may wait here when the process ends of itself
        os._exit(code)

    threading.Thread(target=wait, daemon=True).start()


# Codes in the plane: those that differ in few bits lie near each other.

MIN_POINTS_TO_SPREAD = 10  # below that, two axes say all there is to say
PERPLEXITY, COMPONENTS = 30.0, 32


def place_codes(codes: NDArray[np.uint8], *, seed: int = 0) -> NDArray[np.float64]:
    """Return a place for each code (documents, 2), from -1 to 1; t-SNE of the bits, the same every time."""
    signs = unpack(codes).astype(np.float64) * 2.0 - 1.0  # (documents, bits)
    axes = _principal(signs)
    if len(codes) >= MIN_POINTS_TO_SPREAD and len(np.unique(codes, axis=0)) >= MIN_POINTS_TO_SPREAD:
        axes = _spread(axes, seed)
    plane = np.zeros((len(codes), 2))
    plane[:, : min(2, axes.shape[1])] = axes[:, :2]
    plane -= plane.mean(axis=0) if len(plane) else 0.0
    return plane / (np.abs(plane).max(initial=0.0) or 1.0)


def _principal(signs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the coordinates along the axes with the largest variance."""
    if not len(signs):
        return signs
    centred = signs - signs.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred)
    axes: NDArray[np.float64] = centred @ vectors[:, np.argsort(-values)[:COMPONENTS]]
    return axes


def _spread(axes: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    try:
        from openTSNE import TSNE
    except ModuleNotFoundError:
        raise MissingExtraError('the map needs openTSNE: pip install "snuh[serve]"') from None
    perplexity = min(PERPLEXITY, (len(axes) - 1) / 3.0)
    method = TSNE(perplexity=perplexity, initialization="pca", random_state=seed, n_jobs=1)
    return np.asarray(method.fit(axes))


# What to call a document in one line.

LONGEST = 100


def title_of(document: Document) -> str:
    """Return the field "title", or the first line with something on it, cut where it is long."""
    named = document.metadata.get("title")
    lines = (named if isinstance(named, str) and named.strip() else document.text).splitlines()
    return next((" ".join(line.split()) for line in lines if line.strip()), "")[:LONGEST]


ADDRESS = "SNUH_MAKING"  # the variable that names the collection: everyone may see the arguments of a process
FORMAT_VERSION = 1
MAX_POINTS = 10_000
CLUSTERS, OF_EACH = 100, 100
NICENESS = 5  # searches go first
EXIT_INPUT, EXIT_OTHER = 2, 3  # what whoever asked can mend, and what they cannot


def make_map(collection: Collection) -> dict[str, Any]:
    """Place a sample of the documents in the plane."""
    sample = collection.sample(MAX_POINTS)
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


def build_index(collection: Collection, **options: Any) -> dict[str, Any]:
    """Prepare fast searches, as `snuh index` does."""
    made = collection.build_index(**options)
    return {**index_to_json(made), "description": made.description}


KINDS: dict[str, Callable[..., dict[str, Any]]] = {
    "map": make_map,
    "duplicates": make_duplicates,
    "lists": build_index,
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
