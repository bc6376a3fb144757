from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from snuh.collection import Collection
from tests.collection.worlds import documents, fast_place, toy_model

pytest.register_assert_rewrite(
    "tests.collection.contract", "tests.collection.ways_in", "tests.collection.like_dictionary"
)


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that other users may look into, unlike pytest's own."""
    folder = fast_place()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def folder(place: Path) -> Path:
    """A collection of a few documents, closed."""
    with Collection.create(place / "c", toy_model()) as collection:
        collection.add(documents(12, year=2000))
        collection.search("ship")  # imports what a process without rights may not be able to import
    return place / "c"
