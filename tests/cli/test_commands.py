"""From documents to codes, scores and hits, through the command line."""

from __future__ import annotations

import csv
import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse
from scipy.io import savemat

import snuh
from snuh.cli.app import app
from tests.cli.running import environment, run
from tests.worlds import planted_topics, topic_words, write_jsonl

QUICK = ("--set", "epochs=2", "--bits", "16")


def test_fit_writes_a_model_and_prints_a_summary(world: Path, tmp_path: Path) -> None:
    ran = run("fit", world, "--out", tmp_path / "new" / "model", *QUICK)
    assert ran.code == 0
    for expected in ("snuh-plus, 16 bits, seed 0", "244 for training", "2 (all epochs)", "alive"):
        assert expected in ran.stdout
    assert "epoch 1/2 · loss " in ran.stderr and "· score 0." in ran.stderr
    assert snuh.load(tmp_path / "new" / "model").bits == 16


def test_fit_prints_its_summary_as_json(world: Path, tmp_path: Path) -> None:
    options = ("--method", "snuh", "--seed", 3, "--set", "neighbors=5", "--set", "features.max_terms=150")
    ran = run("fit", world, "--out", tmp_path / "model", *QUICK, *options, "--json")
    summary = json.loads(ran.stdout)
    assert {name: summary[name] for name in ("method", "bits", "seed", "terms", "documents", "epochs")} == {
        "method": "snuh",
        "bits": 16,
        "seed": 3,
        "terms": 150,
        "documents": 244,
        "epochs": 2,
    }
    assert summary["parameters"]["neighbors"] == 5
    assert summary["alive"] is True
    assert summary["stopped"] == "epochs"
    assert 0 < summary["score"] < 1


def test_the_same_seed_gives_the_same_model(world: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        assert run("fit", world, "--out", tmp_path / name, *QUICK).code == 0
    encoders = [(tmp_path / name / "encoder.safetensors").read_bytes() for name in ("a", "b")]
    assert encoders[0] == encoders[1]


def test_dead_codes_are_reported_in_one_line(world: Path, tmp_path: Path) -> None:
    # Weights that start at nothing and hardly learn leave every document with the same code.
    stuck = (
        "--set",
        "start=random",
        "--set",
        "init_range=0",
        "--set",
        "learning_rate=1e-12",
        "--set",
        "epochs=1",
    )
    ran = run("fit", world, "--out", tmp_path / "model", "--bits", 16, *stuck, "--json")
    assert ran.code == 0
    assert json.loads(ran.stdout)["alive"] is False
    warned = [line for line in ran.stderr.splitlines() if line.startswith("snuh: ")]
    assert len(warned) == 1
    assert warned[0].startswith("snuh: warning: the codes are dead")


def test_encode_writes_the_same_codes_to_every_format(fitted: Path, world: Path, tmp_path: Path) -> None:
    records = [json.loads(line) for line in world.read_text().splitlines()]
    ids = [record["id"] for record in records]
    codes = snuh.load(fitted).encode([record["text"] for record in records])
    for name in ("codes.parquet", "codes.npy", "codes.jsonl"):
        ran = run("encode", fitted, world, "--out", tmp_path / name, "--json")
        summary = json.loads(ran.stdout)
        assert summary.pop("seconds") >= 0
        assert summary == {
            "file": str(tmp_path / name),
            "documents": 300,
            "bits": 32,
            "without_known_words": 0,
        }
    table = pq.read_table(tmp_path / "codes.parquet")
    assert table.schema.equals(pa.schema([("id", pa.string()), ("code", pa.binary(4))]))
    assert table["id"].to_pylist() == ids
    assert table["code"].to_pylist() == [code.tobytes() for code in codes]
    np.testing.assert_array_equal(np.load(tmp_path / "codes.npy"), codes)
    assert json.loads((tmp_path / "codes.ids.json").read_text()) == ids
    lines = [json.loads(line) for line in (tmp_path / "codes.jsonl").read_text().splitlines()]
    assert lines == [
        {"id": name, "code": code.tobytes().hex()} for name, code in zip(ids, codes, strict=True)
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "codes.ids.json",
        "codes.jsonl",
        "codes.npy",
        "codes.parquet",
    ]


def test_encode_works_batch_by_batch(
    fitted: Path, world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("encode", fitted, world, "--out", tmp_path / "whole.npy")
    monkeypatch.setattr("snuh.encoding.BATCH_DOCUMENTS", 7)
    for name in ("parts.npy", "parts.parquet"):
        assert run("encode", fitted, world, "--out", tmp_path / name).code == 0
    whole = np.load(tmp_path / "whole.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "parts.npy"), whole)
    assert (tmp_path / "parts.ids.json").read_text() == (tmp_path / "whole.ids.json").read_text()
    stored = pq.read_table(tmp_path / "parts.parquet")["code"].to_pylist()
    assert stored == [code.tobytes() for code in whole]


def test_encode_warns_about_documents_without_known_words(fitted: Path, tmp_path: Path) -> None:
    records = [{"text": "t1word1 t1word2"}, {"text": "unheard"}, {"text": ""}]
    ran = run("encode", fitted, write_jsonl(tmp_path / "d.jsonl", records), "--out", tmp_path / "c.npy")
    assert ran.code == 0
    assert "snuh: warning: 2 of 3 documents have no known word" in ran.stderr


def test_evaluate_finds_the_planted_topics(fitted: Path, world: Path) -> None:
    summary = json.loads(run("evaluate", fitted, world, "--json").stdout)
    assert list(summary["precision"]) == ["1", "10", "50", "100"]
    assert summary["precision"]["10"] > 0.9
    assert summary["random_precision"] == pytest.approx(0.25, abs=0.01)
    assert (summary["queries"], summary["health"]["documents"]) == (28, 244)
    assert summary["health"]["alive"] is True
    table = run("evaluate", fitted, world, "--cutoffs", "5,100").stdout
    for expected in ("28 queries (test)", "precision@5 ", "precision@100 ", "random codes", "distinct codes"):
        assert expected in table
    assert "precision@10 " not in table


def test_evaluate_takes_other_splits(fitted: Path, world: Path) -> None:
    options = ("--query-split", "val", "--database-split", "test", "--json")
    summary = json.loads(run("evaluate", fitted, world, *options).stdout)
    assert (summary["queries"], summary["health"]["documents"]) == (28, 28)


def test_documents_without_a_split_are_the_database(fitted: Path, tmp_path: Path) -> None:
    records = planted_topics(docs=80)
    for record in records:
        if record["split"] != "test":
            del record["split"]
    source = write_jsonl(tmp_path / "docs.jsonl", records)
    summary = json.loads(run("evaluate", fitted, source, "--json").stdout)
    assert (summary["queries"], summary["health"]["documents"]) == (8, 72)


def test_search_finds_the_topic_of_the_query(fitted: Path, world: Path) -> None:
    query = " ".join(topic_words(2)[:6])
    found = json.loads(run("search", world, query, "--model", fitted, "-k", 5, "--json").stdout)
    assert found["query"] == query
    assert [hit["labels"] for hit in found["hits"]] == [["topic2"]] * 5
    distances = [hit["distance"] for hit in found["hits"]]
    assert distances == sorted(distances)
    table = run("search", world, query, "--model", fitted, "-k", 5).stdout
    assert [hit["id"] for hit in found["hits"]] == [
        word for line in table.splitlines() for word in line.split() if word.startswith("doc-")
    ]
    assert "topic2" in table


def test_search_orders_ties_by_position_and_skips_documents_without_known_words(
    fitted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Two documents a batch: ties must keep their order across batches.
    monkeypatch.setattr("snuh.encoding.BATCH_DOCUMENTS", 2)
    texts = ["t1word1", "", "t1word1", "unheard", "t1word1"]
    records = [{"id": f"d{number}", "text": text} for number, text in enumerate(texts)]
    source = write_jsonl(tmp_path / "docs.jsonl", records)
    found = json.loads(run("search", source, "t1word1", "--model", fitted, "--json").stdout)
    assert [(hit["distance"], hit["id"]) for hit in found["hits"]] == [(0, "d0"), (0, "d2"), (0, "d4")]


def test_methods_lists_the_registry() -> None:
    listed = json.loads(run("methods", "--json").stdout)["methods"]
    assert [row["name"] for row in listed if row["default"]] == ["snuh-plus"]
    table = run("methods").stdout
    assert all(row["name"] in table for row in listed)


def test_evaluate_and_bits_take_a_collection(fitted: Path, world: Path, tmp_path: Path) -> None:
    folder = tmp_path / "c"
    assert run("create", folder, "--model", fitted, "--from", world).code == 0
    expected = json.loads(run("evaluate", fitted, world, "--json").stdout)
    for arguments in ((folder,), (folder, world)):
        ran = run("evaluate", *arguments, "--json")
        assert ran.code == 0, ran.stderr
        assert json.loads(ran.stdout)["precision"] == expected["precision"]
    meanings = [json.loads(run("bits", path, "--json").stdout)["meanings"] for path in (fitted, folder)]
    assert meanings[0] == meanings[1]
    ran = run("evaluate", fitted)
    assert ran.code == 2 and "is not a collection: give the documents to evaluate as SOURCE" in ran.stderr


def test_labels_and_splits_may_have_other_names(fitted: Path, world: Path, tmp_path: Path) -> None:
    records = [json.loads(line) for line in world.read_text().splitlines()]
    renamed = [{"id": r["id"], "text": r["text"], "topic": r["labels"], "part": r["split"]} for r in records]
    source = write_jsonl(tmp_path / "renamed.jsonl", renamed)
    names = ("--labels-field", "topic", "--split-field", "part")
    expected = json.loads(run("evaluate", fitted, world, "--json").stdout)
    ran = run("evaluate", fitted, source, *names, "--json")
    assert ran.code == 0, ran.stderr
    assert json.loads(ran.stdout)["precision"] == expected["precision"]
    assert run("create", tmp_path / "c", "--model", fitted, "--from", source, *names).code == 0
    assert run("add", tmp_path / "c", source, *names).code == 0
    assert json.loads(run("evaluate", tmp_path / "c", "--json").stdout)["precision"] == expected["precision"]
    ran = run("evaluate", tmp_path / "c", *names)
    assert ran.code == 2 and "is a collection, which has its own fields: omit --labels-field" in ran.stderr
    fit = run("fit", source, "--out", tmp_path / "m", "--method", "itq", "--split-field", "part", "--json")
    assert json.loads(fit.stdout)["documents"] == sum(record["split"] == "train" for record in records)


def test_version() -> None:
    assert run("--version").stdout == f"snuh {snuh.__version__}\n"


@pytest.mark.parametrize("command", [command.name for command in app.registered_commands])
def test_every_command_has_help_with_examples(command: str) -> None:
    ran = run(command, "--help")
    assert ran.code == 0
    assert "Examples" in ran.stdout and f"$ snuh {command}" in ran.stdout
    assert command in run("--help").stdout
    assert "<bool>" not in ran.stdout + run("--help").stdout


@pytest.mark.parametrize(
    ("words", "completions"),
    [
        ("snuh se", ["search", "serve"]),
        ("snuh spark e", ["encode"]),
        ("snuh fit --method snuh", ["snuh-plus", "snuh"]),
        ("snuh encode --text", ["--text-field"]),
    ],
)
def test_the_shell_completes_commands_options_and_methods(words: str, completions: list[str]) -> None:
    variables = {"_SNUH_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    program = 'import sys; from snuh.cli import main; sys.argv = ["snuh"]; main()'
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment() | variables,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.split() == completions


def as_csv(path: Path, records: list[dict[str, Any]], delimiter: str = ",") -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(["id", "text", "labels", "split"])
        writer.writerows([r["id"], r["text"], ";".join(r["labels"]), r["split"]] for r in records)


def write_source(kind: str, folder: Path) -> Path:
    records = planted_topics(docs=120)
    path = folder / f"docs.{kind}"
    match kind:
        case "jsonl":
            write_jsonl(path, records)
        case "jsonl.gz":
            plain = write_jsonl(folder / "plain.jsonl", records)
            path.write_bytes(gzip.compress(plain.read_bytes()))
        case "csv":
            as_csv(path, records)
        case "tsv":
            as_csv(path, records, "\t")
        case "parquet":
            pq.write_table(pa.Table.from_pylist(records), path)
        case "txt":
            path.write_text("".join(record["text"] + "\n" for record in records))
        case "folder":
            path = folder / "docs"
            path.mkdir()
            for record in records:
                (path / f"{record['id']}.txt").write_text(record["text"])
    return path


@pytest.mark.parametrize("kind", ["jsonl", "jsonl.gz", "csv", "tsv", "parquet", "txt", "folder"])
def test_every_kind_of_source_can_be_fitted_and_encoded(kind: str, tmp_path: Path) -> None:
    source, model = write_source(kind, tmp_path), tmp_path / "model"
    fitted = json.loads(run("fit", source, "--out", model, *QUICK, "--json").stdout)
    assert fitted["documents"] == (120 if kind in ("txt", "folder") else 96)
    encoded = json.loads(run("encode", model, source, "--out", tmp_path / "codes.npy", "--json").stdout)
    assert encoded["documents"] == 120
    if kind not in ("txt", "folder"):
        scores = json.loads(run("evaluate", model, source, "--json").stdout)
        assert scores["precision"]["1"] > 2 * scores["random_precision"]


def test_standard_input_and_a_corpus_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = write_jsonl(tmp_path / "toy.jsonl", planted_topics(docs=120))
    ran = run("fit", "-", "--out", tmp_path / "model", *QUICK, "--json", stdin=corpus.read_text())
    assert json.loads(ran.stdout)["documents"] == 96
    monkeypatch.setenv("SNUH_DATA", str(tmp_path))
    assert json.loads(run("evaluate", tmp_path / "model", "toy", "--json").stdout)["source"] == "toy"


def test_a_matrix_is_fitted_evaluated_and_encoded(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    arrays: dict[str, object] = {}
    for key, docs in (("train", 60), ("cv", 20), ("test", 20)):
        topic = np.arange(docs) % 2
        X = rng.random((docs, 40)) * (rng.random((docs, 40)) < 0.4)
        X[:, :20] *= (topic == 0)[:, None]
        X[:, 20:] *= (topic == 1)[:, None]
        arrays |= {key: sparse.csr_matrix(X), f"gnd_{key}": np.eye(2)[topic]}
    savemat(tmp_path / "rows.mat", arrays)
    fitted = json.loads(run("fit", tmp_path / "rows.mat", "--out", tmp_path / "m", *QUICK, "--json").stdout)
    assert (fitted["documents"], fitted["terms"]) == (60, None)
    assert run("fit", tmp_path / "rows.mat", "--out", tmp_path / "m", *QUICK).code == 0
    scores = json.loads(run("evaluate", tmp_path / "m", tmp_path / "rows.mat", "--json").stdout)
    assert scores["precision"]["10"] > 0.8
    run("encode", tmp_path / "m", tmp_path / "rows.mat", "--out", tmp_path / "codes.npy")
    assert np.load(tmp_path / "codes.npy").shape == (100, 2)
    assert json.loads((tmp_path / "codes.ids.json").read_text())[:2] == ["train-1", "train-2"]
    ran = run("search", tmp_path / "rows.mat", "words", "--model", tmp_path / "m")
    assert ran.code == 2 and "it cannot encode text" in ran.stderr


def test_a_matrix_without_a_validation_part_is_fitted_and_encoded(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    arrays: dict[str, object] = {}
    for key, docs in (("train", 60), ("test", 20)):
        X = rng.random((docs, 40)) * (rng.random((docs, 40)) < 0.4)
        arrays |= {key: sparse.csr_matrix(X), f"gnd_{key}": np.eye(2)[np.arange(docs) % 2]}
    savemat(tmp_path / "rows.mat", arrays)
    fitted = json.loads(run("fit", tmp_path / "rows.mat", "--out", tmp_path / "m", *QUICK, "--json").stdout)
    assert fitted["documents"] == 60
    ran = run("encode", tmp_path / "m", tmp_path / "rows.mat", "--out", tmp_path / "codes.npy", "--json")
    assert json.loads(ran.stdout)["documents"] == 80


def test_other_field_names(tmp_path: Path) -> None:
    records = [{"key": r["id"], "body": r["text"]} for r in planted_topics(docs=60)]
    source, names = write_jsonl(tmp_path / "d.jsonl", records), ("--text-field", "body", "--id-field", "key")
    assert run("fit", source, "--out", tmp_path / "m", *QUICK, *names).code == 0
    run("encode", tmp_path / "m", source, "--out", tmp_path / "codes.npy", *names)
    assert json.loads((tmp_path / "codes.ids.json").read_text())[0] == "doc-0"
    ran = run("search", source, "t1word1 t1word2", "--model", tmp_path / "m", *names, "--json")
    assert json.loads(ran.stdout)["hits"]
