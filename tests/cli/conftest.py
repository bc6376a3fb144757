from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import run
from tests.worlds import planted_topics, write_jsonl


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of four topics with train, val and test."""
    return write_jsonl(tmp_path_factory.mktemp("world") / "topics.jsonl", planted_topics())


@pytest.fixture(scope="session")
def fitted(world: Path) -> Path:
    """A model of that corpus, made by the command line."""
    folder = world.parent / "model"
    ran = run("fit", world, "--out", folder, "--bits", 32, "--set", "epochs=3")
    assert ran.code == 0, ran.stderr
    return folder


@pytest.fixture
def model(fitted: Path, tmp_path: Path) -> Path:
    """A copy of that model, to be spoilt."""
    return Path(shutil.copytree(fitted, tmp_path / "model"))


@pytest.fixture(autouse=True)
def _no_corpora(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let messages be the same wherever the tests run; those about corpora by name set their own folder."""
    monkeypatch.delenv("SNUH_DATA", raising=False)


CITIES = ("Bern", "Zürich", "שלום")


def with_metadata(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give records metadata of every kind: numbers, texts, lists, objects, nothing."""
    return [
        record
        | {
            "year": 2015 + number % 10,
            "city": CITIES[number % 3],
            "origin": {"desk": number % 4, "tags": ["new", "näïve"]},
            "note": None,
        }
        for number, record in enumerate(records)
    ]


@pytest.fixture(scope="session")
def shared_collection(fitted: Path, world: Path) -> Path:
    """A collection of 120 documents with metadata; not to be changed."""
    folder = world.parent / "shared"
    source = write_jsonl(world.parent / "metadata.jsonl", with_metadata(planted_topics(docs=120)))
    ran = run("create", folder, "--model", fitted, "--from", source)
    assert ran.code == 0, ran.stderr
    return folder


@pytest.fixture
def collection(shared_collection: Path, tmp_path: Path) -> Path:
    """A copy of that collection, to be changed."""
    return Path(shutil.copytree(shared_collection, tmp_path / "tickets"))
