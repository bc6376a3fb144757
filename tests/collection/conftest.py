from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from snuh.collection import Collection
from tests.collection.worlds import documents, temporary_folder, toy_model

pytest.register_assert_rewrite(
    "tests.collection.contract", "tests.collection.ways_in", "tests.collection.like_dictionary"
)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs(promise): run where the file's PROMISES have it")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests of promises that are not made."""
    unpromised = [item for item in items if not _is_promised(item)]
    config.hook.pytest_deselected(items=unpromised)
    items[:] = [item for item in items if item not in set(unpromised)]


def _is_promised(item: pytest.Item) -> bool:
    marker = item.get_closest_marker("needs")
    return marker is None or marker.args[0] in item.getparent(pytest.Module).obj.PROMISES  # type: ignore[union-attr]


@pytest.fixture
def workspace() -> Iterator[Path]:
    """A folder that other users may look into, unlike pytest's own."""
    folder = temporary_folder()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def folder(workspace: Path) -> Path:
    """A collection of a few documents, closed."""
    with Collection.create(workspace / "c", toy_model()) as collection:
        collection.add(documents(12, year=2000))
        collection.search("ship")  # imports what a process without rights may not be able to import
    return workspace / "c"
