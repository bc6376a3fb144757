"""Searches by judged queries: each is evaluated with the same queries, and the table shows their means."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from snuh.errors import InputError
from snuh.experiments.retrieval import SEARCHES, JudgedCorpus, default_folders, markdown, searches
from tests.collection.worlds import WORDS, toy_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus whose documents have one word each, three times; the relevant one has the query's word."""
    folder = tmp_path_factory.mktemp("ir") / "harbours"
    (folder / "qrels").mkdir(parents=True)
    lines = {
        "corpus": [{"_id": f"d{n}", "title": word, "text": f"{word} {word}"} for n, word in enumerate(WORDS)],
        "queries": [{"_id": f"q{n}", "text": word} for n, word in enumerate(WORDS)],
    }
    for name, objects in lines.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in objects))
    judgments = [f"q{n}\td{n}\t1" for n in range(len(WORDS))]
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "\n".join(judgments))
    return folder


def test_every_search_is_evaluated_with_the_same_queries(folder: Path) -> None:
    found = dict(searches(JudgedCorpus.read(folder), toy_model(bits=8)))
    assert set(found) == set(SEARCHES)
    for name in ("BM25", "TF-IDF", "hybrid"):
        assert [quality.ndcg_at_10 for quality in found[name].values()] == [1.0] * len(WORDS)
    assert all(set(qualities) == {f"q{n}" for n in range(len(WORDS))} for qualities in found.values())


def test_the_table_has_the_mean_over_seeds_and_corpora() -> None:
    def row(corpus: str, bits: int, seed: int, value: float) -> dict[str, object]:
        measures = {"ndcg_at_10": value, "average_precision": 0.25, "recall_at_100": 1.0}
        return {"corpus": corpus, "bits": bits, "seed": seed, "searches": {"BM25": measures, "LSA": measures}}

    rows = [row("med", 16, 0, 0.5), row("med", 16, 1, 0.7), row("npl", 16, 0, 0.2), row("npl", 32, 0, 0.2)]
    lines = markdown(rows, ["med", "npl", "unknown"], (16, 32)).splitlines()
    assert lines[2:] == [
        "| search | bits | med | npl | mean |",
        "|---|---|---|---|---|",
        "| BM25 |  | .600 / .250 / 1.000 | .200 / .250 / 1.000 | .400 / .250 / 1.000 |",
        "| LSA | 16 | .600 / .250 / 1.000 | .200 / .250 / 1.000 | .400 / .250 / 1.000 |",
        "| LSA | 32 |  | .200 / .250 / 1.000 |  |",
    ]


def test_folders_are_those_of_beir(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SNUH_DATA", str(folder.parent.parent))
    with pytest.raises(InputError, match="is not in the layout of BEIR"):
        JudgedCorpus.read(folder / "qrels")
    monkeypatch.setenv("SNUH_DATA", str(folder))
    with pytest.raises(InputError, match="has no folders ir/NAME"):
        default_folders()
