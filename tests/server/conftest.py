from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from snuh.collection import Collection
from tests.collection.worlds import document, documents, fast_place, toy_model
from tests.server.serving import Server, serving

YEARS = 3


def fill(folder: Path) -> Path:
    """Make a collection of a few documents with fields, and one that no search finds."""
    with Collection.create(folder, toy_model()) as collection:
        collection.add(
            [document(number, year=2000 + number % YEARS, desk={"city": "Bern"}) for number in range(40)]
        )
        collection.add([{"id": "unknown", "text": "zzz qqq", "labels": ["odd"], "split": "test"}])
    return folder


@pytest.fixture
def place() -> Iterator[Path]:
    folder = fast_place()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def folder(place: Path) -> Path:
    return fill(place / "c")


@pytest.fixture(scope="module")
def shared() -> Iterator[Server]:
    """A server for tests that only read, or whose writing no other test notices: c is as `fill` made it."""
    place = fast_place()
    fill(place / "c")
    with Collection.create(place / "d", toy_model(1, bits=24)) as other:
        other.add(documents(5))
    with serving(place / "c", place / "d") as server:
        server.place = place  # type: ignore[attr-defined]
        yield server
    shutil.rmtree(place)
