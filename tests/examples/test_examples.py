"""The examples run: scripts as processes, notebooks cell by cell."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.cli.running import environment
from tests.worlds import planted_topics, write_jsonl

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A corpus with clear topics."""
    monkeypatch.chdir(tmp_path)
    return write_jsonl(tmp_path / "planted.jsonl", planted_topics(docs=400))


def run_script(name: str, *arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, EXAMPLES / name, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment() | {"MPLBACKEND": "agg"},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_first_search(source: Path) -> None:
    lines = run_script("first_search.py", source, "t2word1 t2word2 t2word3 t2word4").splitlines()
    assert lines[0].startswith("5 hits")
    assert {int(line.split()[1].removeprefix("doc-")) % 4 for line in lines[1:]} == {2}


def test_recommender(source: Path) -> None:
    lines = run_script("recommender.py", source, "doc-1", "doc-5").splitlines()
    assert len(lines) == 5
    assert {int(line.split()[1].removeprefix("doc-")) % 4 for line in lines} == {1}


def test_clean_parquet(source: Path, tmp_path: Path) -> None:
    frame = pd.read_json(source, lines=True)
    copies = frame.head(7).assign(id=[f"copy-{number}" for number in range(7)])
    pd.concat([frame, copies]).to_parquet(tmp_path / "in.parquet")
    assert "407 documents, 7 clusters of near-duplicates, 7 dropped" in run_script(
        "clean_parquet.py", tmp_path / "in.parquet", tmp_path / "out.parquet"
    )
    assert len(pd.read_parquet(tmp_path / "out.parquet")) == 400


def test_topics(source: Path, tmp_path: Path) -> None:
    lines = run_script("topics.py", source, tmp_path / "map.png").splitlines()
    assert sum(int(line.split()[0]) for line in lines) == 400
    assert (tmp_path / "map.png").stat().st_size > 1000


def test_own_method(source: Path) -> None:
    lines = run_script("own_method.py", source).splitlines()
    assert [line.split()[0] for line in lines] == ["MedianPCA", "ITQ"]
    assert all(float(line.split()[2]) > 0.5 for line in lines)


@pytest.mark.parametrize("name", ["search.ipynb", "compare.ipynb"])
def test_a_notebook_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    notebook = json.loads((EXAMPLES / name).read_text(encoding="utf-8"))
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [], "clear the outputs before you commit"
            exec(compile("".join(cell["source"]), f"{name}:{cell['id']}", "exec"), namespace)
    table = namespace["frame"] if name == "search.ipynb" else namespace["table"]
    assert len(table) == (407 if name == "search.ipynb" else 9)


def test_every_example_is_listed_and_tested() -> None:
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    tests = Path(__file__).read_text(encoding="utf-8")
    for path in [*EXAMPLES.glob("*.py"), *EXAMPLES.glob("*.ipynb")]:
        assert f"({path.name})" in listed and f'"{path.name}"' in tests
