"""When kernels are compiled, what is said about it, and that nothing needs numba which works without it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import snuh
from snuh import Model, TextHasher, _numba
from snuh._numba import IMPORT_SECONDS, Kernels, prefer_compiled
from tests.worlds import planted_topics

# Numbers a few words with the compiled tokenizer, whatever that costs.
COUNT = """
import logging, sys
logging.basicConfig(level=logging.INFO, format="%(message)s")
from snuh._numba import prefer_compiled
from snuh.features.analyzer import Analyzer
from snuh.features.weighting import TermCounter
prefer_compiled()
counter = TermCounter(["ab"], Analyzer())
print(counter.count(["AB ab"]).counts[0], "snuh.features.tokenizer_numba" in sys.modules)
"""

# Searches with some packages hidden; prints the hits and what was imported.
SEARCH = """
import json, sys
for package in sys.argv[2:]:
    sys.modules[package] = None  # importing it raises ModuleNotFoundError
import snuh
hits = []
with snuh.Collection(sys.argv[1]) as collection:
    for options in ({}, {"mode": "codes"}, {"mode": "words"}, {"mode": "hybrid"}):
        found = collection.search("t1word1 t2word2 t0word3", k=7, **options)
        hits.append([(hit.document.id, hit.distance, hit.score) for hit in found])
heavy = ("numba", "scipy", "numpy.ma", "pyarrow", "pydantic", "torch", "sklearn", "rich", "typer")
print(json.dumps([hits, [name for name in heavy if sys.modules.get(name) is not None]]))
"""


def run(program: str, *arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment |= {"PYTHONPATH": str(Path(snuh.__file__).parents[1])} | variables
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def model() -> Model:
    texts = [record["text"] for record in planted_topics()]
    return TextHasher(method="lsh", bits=64).fit(texts).model_


@pytest.fixture
def collection(model: Model, tmp_path: Path) -> Path:
    with snuh.Collection.create(tmp_path / "c", model) as created:
        created.add(planted_topics())
        created.search("t1word1", mode="words")  # writes the index of words
    return tmp_path / "c"


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> Kernels:
    """Kernels of a process that has done nothing yet; the modules stand for any two."""
    monkeypatch.setattr(Kernels, "_seconds", 0.0)
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    monkeypatch.setattr(_numba, "can_compile", lambda: True)
    return Kernels(compiled="zipfile", plain="json")


def test_numpy_is_used_until_it_took_as_long_as_importing_numba(kernels: Kernels) -> None:
    names = [kernels(IMPORT_SECONDS / 4).__name__ for _ in range(5)]
    assert names == ["json", "json", "json", "zipfile", "zipfile"]


def test_numba_is_used_at_once_for_long_work_and_in_processes_that_stay(kernels: Kernels) -> None:
    assert kernels(0.0).__name__ == "json"
    prefer_compiled()
    assert kernels(0.0).__name__ == "zipfile"


def test_numba_is_used_once_something_else_has_imported_it(
    kernels: Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "numba", sys)
    assert kernels(0.0).__name__ == "zipfile"


def test_compiling_is_announced_once_per_installation(tmp_path: Path) -> None:
    said = [run(COUNT, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2)]
    assert [done.stdout.split() for done in said] == [["2", "True"]] * 2, said[0].stderr
    assert said[0].stderr.splitlines() == ["compiling kernels, once per installation"]
    assert said[1].stderr == ""


def test_nothing_is_compiled_where_it_cannot_be_kept(tmp_path: Path) -> None:
    copy = tmp_path / "snuh"
    shutil.copytree(Path(snuh.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    blocked = tmp_path / "blocked"  # files where folders would be made stop even the super-user
    for path in (blocked, copy / "__pycache__", copy / "features" / "__pycache__"):
        path.write_text("")
    done = run(COUNT, PYTHONPATH=str(tmp_path), HOME=str(blocked), XDG_CACHE_HOME=str(blocked))
    assert done.stdout.split() == ["2", "False"], done.stderr
    assert "set NUMBA_CACHE_DIR" in done.stderr and "compiling" not in done.stderr


def test_a_search_imports_nothing_heavy_and_finds_the_same_without_numba(collection: Path) -> None:
    hits, imported = json.loads(run(SEARCH, collection).stdout)
    assert all(hits) and imported == []
    hidden = run(SEARCH, collection, "numba", "llvmlite", "pyarrow")
    assert json.loads(hidden.stdout)[0] == hits
    compiled = run(f"import numba\n{SEARCH}", collection)
    assert json.loads(compiled.stdout)[0] == hits
