"""Which commit a measurement was made by."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import snuh
from snuh.experiments.environment import commit

OPTIONS = [
    option
    for value in ("user.name=someone", "user.email=someone@example.org", "commit.gpgsign=false")
    for option in ("-c", value)
]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one commit, which the package seems to run from."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:  # as in a hook
        monkeypatch.delenv(name)
    for name in ("src/snuh/__init__.py", "results/runs.jsonl"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("as committed\n")
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run(["git", *OPTIONS, *command], cwd=tmp_path, check=True)
    monkeypatch.setattr(snuh, "__file__", str(tmp_path / "src/snuh/__init__.py"))
    return tmp_path


def test_a_clean_checkout_is_named_by_its_commit(checkout: Path) -> None:
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=checkout, capture_output=True, text=True)
    assert commit() == done.stdout.strip()


def test_changed_sources_are_told_and_added_results_are_not(checkout: Path) -> None:
    clean = commit()
    with (checkout / "results/runs.jsonl").open("a") as file:
        file.write("a run\n")
    assert commit() == clean
    (checkout / "src/snuh/__init__.py").write_text("changed\n")
    assert commit() == f"{clean}-dirty"


def test_outside_of_a_checkout_there_is_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snuh, "__file__", str(tmp_path / "src/snuh/__init__.py"))
    assert commit() is None
