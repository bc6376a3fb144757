"""Tiny corpora on disk, and rows of runs whose figures are known."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from snuh.experiments.run import Run
from tests.worlds import planted_topics

TINY = {"epochs": 2, "neighbors": 5, "trees": 2}


def write_corpus(path: Path, *, docs: int, seed: int = 0) -> None:
    """Write planted topics as .jsonl.gz."""
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(record) + "\n" for record in planted_topics(docs=docs, seed=seed))


def data_folder(parent: Path) -> Path:
    """Make a folder for SNUH_DATA to name, with the corpus toy."""
    folder = parent / "data"
    folder.mkdir()
    write_corpus(folder / "toy.jsonl.gz", docs=200)
    return folder


def tiny_run(**changes: Any) -> Run:
    """Return a run of seconds on the corpus toy."""
    facts: dict[str, Any] = {
        "corpus": "toy",
        "method": "snuh",
        "bits": 16,
        "seed": 0,
        "select": "label-free",
        "parameters": TINY,
        "features": {},
    }
    return Run(**facts | changes)


def finished(precision: float | None, **changes: Any) -> dict[str, Any]:
    """Return a row with this precision@100, or with an error where there is none."""
    row = {
        "corpus": "ng20",
        "method": "snuh",
        "bits": 16,
        "seed": 0,
        "select": "label-free",
        "parameters": {},
        "features": {},
        "artifact": "codes",
        "documents": None,
        "corpus_sha256": None,
        "precision": None if precision is None else {"100": precision},
        "seconds": 60.0,
        "error": "the loss is not finite" if precision is None else None,
    }
    return row | changes


def table_cells(text: str) -> list[list[str]]:
    """Return the cells of a Markdown table, line by line, its titles first."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    titles, _, *rest = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [titles, *rest]
