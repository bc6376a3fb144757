"""Every promise of a backend is tested there, and is in the table of the docs."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from tests.collection import contract, ways_in
from tests.collection.promises import FOLDER, MILVUS, POSTGRESQL, Promise

DOCS = Path(__file__).parents[2] / "docs"
PROMISES = {"test_contract": FOLDER, "test_postgres_contract": POSTGRESQL, "test_milvus_contract": MILVUS}


def promises_needed(module: object) -> dict[str, list[Promise]]:
    """Return the promises that each test of a module says it needs."""
    return {
        name: [mark.args[0] for mark in getattr(test, "pytestmark", []) if mark.name == "needs"]
        for name, test in vars(module).items()
        if name.startswith("test_")
    }


@pytest.mark.parametrize("module", [contract, ways_in])
def test_every_test_of_the_contract_needs_one_promise(module: object) -> None:
    needed = promises_needed(module)
    assert needed and {name for name, some in needed.items() if len(some) != 1} == set()


@pytest.mark.parametrize("name", PROMISES)
def test_every_promise_that_is_made_is_tested(name: str) -> None:
    module = import_module(f"tests.collection.{name}")
    assert module.PROMISES is PROMISES[name]
    tested = {promise for some in promises_needed(module).values() for promise in some}
    assert PROMISES[name] - tested == set()


def test_the_docs_have_the_table_of_promises() -> None:
    text = (DOCS / "collections.md").read_text()
    rows = re.findall(r"^\| (.+?) \| (yes|no) \| (yes|no) \| (yes|no) \|$", text, re.MULTILINE)
    expected = [
        (promise.value, *("yes" if promise in made else "no" for made in (FOLDER, POSTGRESQL, MILVUS)))
        for promise in Promise
    ]
    assert rows == expected
    for page in ("milvus.md", "postgresql.md"):
        assert "collections.md#what-each-backend-promises" in (DOCS / page).read_text()
