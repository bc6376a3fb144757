"""The demo: train on the docstrings of installed Python packages, evaluate the codes, and search."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from snuh.collection import Collection, ensure_absent, is_collection
from snuh.corpus import TextSource
from snuh.corpus.docstrings import DocstringSource
from snuh.encoding import EncodedBatch, encode_source
from snuh.errors import InputError
from snuh.evaluation import evaluate_splits
from snuh.hasher import TextHasher
from snuh.io import atomic_write, check_replaceable
from snuh.metrics import HEADLINE_CUTOFF
from snuh.model import load
from snuh.search import Hits

MODEL_FOLDER, CORPUS_FILE, COLLECTION_FOLDER = "model", "docstrings.jsonl", "docstrings"
QUERIES = (
    "read a csv file into a table",
    "matrix inverse of a symmetric positive definite matrix",
    "open a network socket and wait for connections",
    "random forest classifier",
)
DEMO_FILES = {MODEL_FOLDER, CORPUS_FILE, COLLECTION_FOLDER}
HITS = 5
QUICK_DOCUMENTS, QUICK_EPOCHS = 150, 10


@dataclass(frozen=True)
class DemoQuality:
    """Precision of test docstrings against training docstrings of the same package, and of random codes."""

    precision: float
    random_precision: float
    bits: int
    queries: int
    documents: int
    packages: int


@dataclass(frozen=True)
class DemoSearch:
    """A query and its hits."""

    query: str
    hits: Hits


@dataclass(frozen=True)
class DemoResult:
    """The quality of the codes and the example searches."""

    quality: DemoQuality
    searches: tuple[DemoSearch, ...]


def demo_source(*, quick: bool = False) -> DocstringSource:
    """Return the docstrings of the installed packages; `quick` limits the number per package."""
    return DocstringSource(limit=QUICK_DOCUMENTS) if quick else DocstringSource()


def demo_hasher(*, bits: int = 64, quick: bool = False) -> TextHasher:
    """Return a hasher with the default method; `quick` limits the epochs."""
    parameters = {"epochs": QUICK_EPOCHS} if quick else {}
    # The documents are about code: "random forest" finds RandomForestClassifier. A third of the terms that
    # they have takes half of the time.
    return TextHasher(bits=bits, parameters=parameters, features={"identifiers": True, "max_terms": 10_000})


def check_folder(folder: Path) -> None:
    """Raise InputError if `folder` contains files that are not the demo's."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"cannot write the demo to {folder}: it is a file, choose a folder")
    foreign = sorted({path.name for path in folder.glob("*")} - DEMO_FILES)
    if foreign:
        raise InputError(
            f"{folder} contains {foreign[0]!r}, which is not part of the demo: choose another folder"
        )
    check_replaceable(folder / MODEL_FOLDER)
    if not is_collection(folder / COLLECTION_FOLDER):
        ensure_absent(folder / COLLECTION_FOLDER)


def save_demo(folder: Path, hasher: TextHasher, source: TextSource) -> None:
    """Write the model, the docstrings as JSON lines, and a collection of them."""
    hasher.save(folder / MODEL_FOLDER)
    write_corpus(source, folder / CORPUS_FILE)
    if is_collection(folder / COLLECTION_FOLDER):  # of an earlier demo
        shutil.rmtree(folder / COLLECTION_FOLDER)
    with Collection.create(folder / COLLECTION_FOLDER, load(folder / MODEL_FOLDER)) as collection:
        collection.add(source)


def explore(folder: Path, source: TextSource, *, queries: Sequence[str] = QUERIES) -> DemoResult:
    """Evaluate the codes of a saved demo, with packages as labels, and search its collection."""
    batches = list(encode_source(load(folder / MODEL_FOLDER), source))
    with Collection(folder / COLLECTION_FOLDER) as collection:
        searches = tuple(DemoSearch(query, collection.search(query, k=HITS)) for query in queries)
    return DemoResult(_quality(batches, source.name), searches)


def write_corpus(source: TextSource, path: Path) -> None:
    """Write the documents of a source as JSON lines."""
    with atomic_write(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        for document in source:
            record = {
                "id": document.id,
                "text": document.text,
                "labels": document.labels,
                "split": document.split,
                **document.metadata,
            }
            file.write(json.dumps(record) + "\n")


def _quality(batches: Sequence[EncodedBatch], name: str) -> DemoQuality:
    evaluation = evaluate_splits(batches, name=name, cutoffs=(HEADLINE_CUTOFF,))
    labels = (document.labels for batch in batches for document in batch.documents)
    return DemoQuality(
        precision=evaluation.precision[HEADLINE_CUTOFF],
        random_precision=evaluation.random_precision,
        bits=evaluation.health.bits,
        queries=evaluation.queries,
        documents=evaluation.health.documents,
        packages=len({package for names in labels for package in names}),
    )
