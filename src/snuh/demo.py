"""The demo: codes for the docstrings of the installed Python packages, their quality, and a few searches."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from snuh.corpus import Document, TextSource
from snuh.corpus.docstrings import DocstringSource
from snuh.errors import InputError
from snuh.hasher import TextHasher
from snuh.index import nearest
from snuh.metrics import HEADLINE_CUTOFF, evaluate_codes
from snuh.model import Model
from snuh.storage import atomic_write, check_replaceable

MODEL_FOLDER, CORPUS_FILE = "model", "docstrings.jsonl"
QUERIES = (
    "read a csv file into a table",
    "matrix inverse of a symmetric positive definite matrix",
    "open a network socket and wait for connections",
    "random forest classifier",
)
HITS = 5
EPOCHS = 8
QUICK_MOST, QUICK_EPOCHS = 150, 10


@dataclass(frozen=True)
class DemoQuality:
    """How often a test docstring finds those of its own package, and what random codes would reach."""

    precision: float
    chance: float
    bits: int
    queries: int
    documents: int
    packages: int


@dataclass(frozen=True)
class DemoHit:
    """One docstring found."""

    distance: int
    document: Document


@dataclass(frozen=True)
class DemoSearch:
    """A query and what it found; nothing where the model knows none of its words."""

    query: str
    hits: tuple[DemoHit, ...]


@dataclass(frozen=True)
class DemoResult:
    """What the demo found."""

    quality: DemoQuality
    searches: tuple[DemoSearch, ...]


def demo_source(*, quick: bool = False) -> DocstringSource:
    """Return the docstrings of the installed packages; `quick` takes few of each."""
    return DocstringSource(most=QUICK_MOST) if quick else DocstringSource()


def demo_hasher(*, bits: int = 64, quick: bool = False) -> TextHasher:
    """Return the default method with fewer epochs: for a first look, two minutes are enough."""
    return TextHasher(bits=bits, parameters={"epochs": QUICK_EPOCHS if quick else EPOCHS})


def check_folder(folder: Path) -> None:
    """Raise InputError where `folder` holds anything that is not the demo's."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"cannot write the demo to {folder}: it is a file, choose a folder")
    foreign = sorted({path.name for path in folder.glob("*")} - {MODEL_FOLDER, CORPUS_FILE})
    if foreign:
        raise InputError(f"{folder} holds {foreign[0]!r}, which is not the demo's: choose another folder")
    check_replaceable(folder / MODEL_FOLDER)


def save_demo(folder: Path, hasher: TextHasher, source: TextSource) -> None:
    """Write the model, and the docstrings as a file that the other commands can read."""
    hasher.save(folder / MODEL_FOLDER)
    write_corpus(source, folder / CORPUS_FILE)


def explore(model: Model, source: TextSource, *, queries: Sequence[str] = QUERIES) -> DemoResult:
    """Measure the quality of the codes by package, and search."""
    documents = list(source)
    codes = model.encode([document.text for document in documents])
    searches = tuple(_search(model, query, documents, codes) for query in queries)
    return DemoResult(_quality(documents, codes), searches)


def write_corpus(source: TextSource, path: Path) -> None:
    """Write the documents of a source as JSON lines."""
    with atomic_write(path) as beside, beside.open("w", encoding="utf-8") as file:
        for document in source:
            record = {
                "id": document.id,
                "text": document.text,
                "labels": document.labels,
                "split": document.split,
                **document.metadata,
            }
            file.write(json.dumps(record) + "\n")  # ASCII: a docstring may hold half a character


def _quality(documents: Sequence[Document], codes: NDArray[np.uint8]) -> DemoQuality:
    splits = np.array([document.split for document in documents])
    labels = [document.labels for document in documents]
    queries, database = np.flatnonzero(splits == "test"), np.flatnonzero(splits == "train")
    # The precision of the whole database is what random codes reach at any cut-off.
    evaluation = evaluate_codes(
        codes[queries],
        [labels[row] for row in queries],
        codes[database],
        [labels[row] for row in database],
        cutoffs=(HEADLINE_CUTOFF, len(database)),
    )
    return DemoQuality(
        precision=evaluation.precision[HEADLINE_CUTOFF],
        chance=evaluation.precision[len(database)],
        bits=codes.shape[1] * 8,
        queries=len(queries),
        documents=len(database),
        packages=len({name for names in labels for name in names}),
    )


def _search(model: Model, query: str, documents: Sequence[Document], codes: NDArray[np.uint8]) -> DemoSearch:
    if model.features is None or not model.features.transform([query]).nnz:
        return DemoSearch(query, ())
    found = nearest(model.encode([query]), codes, k=HITS)
    pairs = zip(found.distances[0], found.rows[0], strict=True)
    return DemoSearch(query, tuple(DemoHit(int(distance), documents[row]) for distance, row in pairs))
