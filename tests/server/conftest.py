from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from snuh.collection import Collection
from tests.collection.worlds import document, documents, temporary_folder, toy_model
from tests.server.serving import Server, serving

YEARS = 3


def fill(folder: Path) -> Path:
    """Create a collection of 40 documents with metadata, and one without any known word."""
    with Collection.create(folder, toy_model()) as collection:
        collection.add(
            [document(number, year=2000 + number % YEARS, desk={"city": "Bern"}) for number in range(40)]
        )
        collection.add([{"id": "unknown", "text": "zzz qqq", "labels": ["odd"], "split": "test"}])
    return folder


@pytest.fixture
def root() -> Iterator[Path]:
    folder = temporary_folder()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def folder(root: Path) -> Path:
    return fill(root / "c")


@pytest.fixture(scope="module")
def shared() -> Iterator[Server]:
    """A server whose collections no test changes: c, as `fill` creates it, and d."""
    root = temporary_folder()
    fill(root / "c")
    with Collection.create(root / "d", toy_model(1, bits=24)) as other:
        other.add(documents(5))
    with serving(root / "c", root / "d") as server:
        server.root = root
        yield server
    shutil.rmtree(root)
