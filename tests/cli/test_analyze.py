"""`snuh analyze` shows what the analyzer makes of texts and sources."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.running import run
from tests.cli.test_bad_input import assert_refused
from tests.worlds import write_jsonl


def test_a_text_is_shown_token_by_token() -> None:
    ran = run("analyze", "The e-mails were running when they had to wait for it")
    assert ran.code == 0
    rows = [line.split() for line in ran.stdout.splitlines()]
    assert rows[0] == ["languages", "en"]
    assert ["email", "e-mails", "4-11"] in rows and ["run", "running", "17-24"] in rows


def test_a_text_as_json_has_spans_of_the_original() -> None:
    report = json.loads(run("analyze", "naïve 東京タワー", "--json", "--set", "features.language=en").stdout)
    assert report["languages"] == ["en"]
    assert [token["term"] for token in report["tokens"]] == ["naïv", "東京", "京タ", "タワ", "ワー"]
    assert report["tokens"][1] == {"term": "東京", "word": "東京", "start": 6, "end": 8}


def test_a_source_is_summarized(tmp_path: Path) -> None:
    texts = [
        "Der Drucker ist kaputt und druckt nicht",
        "Die Drucker sind alle kaputt",
        "Das Netz ist weg",
        "Netz",
    ]
    source = write_jsonl(tmp_path / "a.jsonl", [{"id": str(n), "text": text} for n, text in enumerate(texts)])
    report = json.loads(run("analyze", source, "--json").stdout)
    assert report["languages"] == ["de"] and report["documents"] == 4
    assert ["drucker", 2] in report["frequent"] and ["weg", 1] not in report["frequent"]
    assert report["documents_without_known_words"] == 0 and 0 < report["coverage"] < 1
    plain = run("analyze", source).stdout
    assert "de, stemmed" in plain and "drucker 2" in plain


def test_the_vocabulary_of_a_model_tells_known_words(world: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    assert run("fit", world, "--out", model, "--method", "itq", "--bits", 16).code == 0
    report = json.loads(run("analyze", "somethingneverseen", "--model", model, "--json").stdout)
    assert [token["known"] for token in report["tokens"]] == [False]
    assert "not in the vocabulary" in run("analyze", "somethingneverseen", "--model", model).stdout
    covered = json.loads(run("analyze", world, "--model", model, "--json").stdout)
    assert covered["coverage"] > 0.9


def test_bad_arguments_are_refused(world: Path, tmp_path: Path) -> None:
    assert_refused(run("analyze", "tickest.jsonl"), r"tickest\.jsonl")
    assert_refused(run("analyze", "a text", "--words", 0), "--words must be at least 1")
    assert_refused(run("analyze", "a text", "--set", "epochs=3"), "settings of the features.* got epochs")
    assert_refused(run("analyze", "a text", "--set", "features.language=english"), "two letters")
    assert_refused(run("analyze", "a text", "--model", tmp_path / "none"), "none")


def test_texts_with_few_words_in_common_are_refused_by_fit(tmp_path: Path) -> None:
    records = [
        {"id": str(n), "text": f"unique{n} alone{n}" if n % 10 else "shared words"} for n in range(100)
    ]
    source = write_jsonl(tmp_path / "a.jsonl", records)
    ran = run("fit", source, "--out", tmp_path / "m", "--method", "itq", "--bits", 16)
    assert_refused(ran, r"90 of 100 documents have no word in the vocabulary.*snuh analyze")
    assert not (tmp_path / "m").exists()
