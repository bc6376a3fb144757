from __future__ import annotations

import json
from pathlib import Path

import pytest

import snuh
from snuh.corpus.docstrings import DocstringSource, installed_packages
from snuh.demo import QUERIES, demo_hasher, explore, save_demo, write_corpus
from tests.cli.running import run

PACKAGES = {name: installed_packages()[name] for name in ("stdlib", "numpy", "sklearn", "typer")}


def few_packages() -> DocstringSource:
    return DocstringSource(packages=PACKAGES, limit=120)


def test_the_demo_finds_docstrings_of_the_same_package(tmp_path: Path) -> None:
    source, hasher = few_packages(), demo_hasher(bits=32, quick=True)
    hasher.fit_source(source)
    save_demo(tmp_path, hasher, source)
    result = explore(tmp_path, source, queries=[*QUERIES, "qwxyz"])
    assert result.quality.packages == len(PACKAGES)
    assert result.quality.random_precision == pytest.approx(0.25, abs=0.05)
    assert result.quality.precision > 1.3 * result.quality.random_precision
    assert [search.query for search in result.searches] == [*QUERIES, "qwxyz"]
    *found, unknown = result.searches
    for search in found:
        scores = [hit.score or 0.0 for hit in search.hits]
        assert len(scores) == 5 and scores == sorted(scores, reverse=True)
    assert unknown.hits == [] and unknown.hits.note == 'no document contains "qwxyz"'


def test_the_corpus_it_writes_can_be_read_again(tmp_path: Path) -> None:
    module = tmp_path / "halves.py"
    module.write_text('"""Some words before half a character \\ud83d and after it."""\n')
    source = DocstringSource(packages={"halves": module}, min_documents=1)
    write_corpus(source, tmp_path / "docstrings.jsonl")
    assert [document.text for document in snuh.open_source(tmp_path / "docstrings.jsonl")] == [
        document.text for document in source
    ]


def test_the_command_prints_quality_searches_and_next_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("snuh.corpus.docstrings.installed_packages", lambda: PACKAGES)
    monkeypatch.setattr("snuh.cli.output.MIN_SECONDS_FOR_A_LINE", 0.0)
    folder = tmp_path / "demo"
    ran = run("demo", "--quick", "--bits", 32, "--out", folder)
    assert ran.code == 0, ran.stderr
    for stage in ("Writing the docstrings", "Creating the collection", "Encoding"):
        assert f"\n{stage}: done in" in ran.stderr
    wanted = (
        *QUERIES,
        f"{folder}/model",
        "Next steps:",
        f"snuh serve {folder}/docstrings",
        "http://127.0.0.1",
    )
    for expected in ("with random codes it would be", *wanted):
        assert expected in ran.stdout.replace("\n", "")
    # The commands it recommends work, and so does running it again.
    corpus, model = folder / "docstrings.jsonl", folder / "model"
    found = run("search", folder / "docstrings", "fast fourier transform", "--explain", "--json")
    assert json.loads(found.stdout)["hits"]
    scores = json.loads(run("evaluate", model, corpus, "--json").stdout)
    again = json.loads(run("demo", "--quick", "--bits", 32, "--out", folder, "--json").stdout)
    assert again["quality"]["precision"] == pytest.approx(scores["precision"]["100"])
    assert again["quality"]["random_precision"] == pytest.approx(scores["random_precision"])
    assert sorted(path.name for path in folder.iterdir()) == ["docstrings", "docstrings.jsonl", "model"]
