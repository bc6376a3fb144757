from __future__ import annotations

import shutil
from pathlib import Path

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
