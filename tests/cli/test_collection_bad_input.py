"""Whatever is wrong with a request to a collection: one clear line, exit code 2, and nothing is changed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import snuh
from snuh.cli import training
from tests.cli.running import environment, run, run_process
from tests.cli.test_bad_input import assert_refused
from tests.worlds import planted_topics, write_jsonl

# Each through a real process: the arguments after the command and the collection, and what is said.
REQUESTS: dict[str, tuple[tuple[object, ...], str]] = {
    "unknown id": (("similar", "doc-1199"), r"has no document 'doc-1199' \(did you mean \"doc-119\"\?\)"),
    "unknown id to delete": (("delete", "doc-1", "dok-2"), r"has no document 'dok-2' \(did you mean"),
    "unknown field": (
        ("search", "t1word1", "--where", "yeer = 2020"),
        r'no document has a field "yeer" \(did you mean "year"\?\): expected one of id, labels, split, city',
    ),
    "k of 0": (("search", "t1word1", "-k", 0), r"-k must be at least 1, got 0"),
    "negative radius": (("search", "t1word1", "--radius", -1), r"radius must be .*at least 0, got -1"),
    "unknown rerank": (
        ("search", "t1word1", "--rerank", "cosin"),
        r'rerank must be one of asymmetric, cosine, got "cosin" \(did you mean "cosine"\?\)',
    ),
    "empty query": (("search", ""), r"the query is empty: expected at least one word"),
    "two kinds of query": (("search", "t1word1", "--queries", "q.jsonl"), r"expected a text .*got both"),
    "no query": (("search",), r"expected a text to search for, or --queries FILE, got neither"),
    "another model": (("search", "t1word1", "--model", "m"), r"has its own model: omit --model"),
    "nothing to delete": (("delete",), r"expected either ids or --where FILTER, got neither"),
    "ids and filter": (("delete", "doc-1", "--where", "year = 1"), r"either ids or --where FILTER, got both"),
    "its own fields": (
        ("dedup", "--text-field", "body"),
        r"is a collection, which has its own fields: omit --text-field",
    ),
}


@pytest.mark.parametrize("case", REQUESTS)
def test_an_invalid_request_is_refused(case: str, shared_collection: Path) -> None:
    (command, *arguments), expected = REQUESTS[case]
    assert_refused(run_process(command, shared_collection, *arguments), expected)
    with snuh.Collection(shared_collection) as opened:
        assert len(opened) == 120


@pytest.mark.parametrize("command", ["search", "similar", "add", "delete", "info", "export", "rehash"])
def test_an_unknown_collection_is_refused(command: str, fitted: Path, tmp_path: Path) -> None:
    options: dict[str, tuple[object, ...]] = {
        "search": ("t1word1",),
        "similar": ("doc-1",),
        "add": ("x.jsonl",),
        "delete": ("doc-1",),
        "export": ("--out", tmp_path / "e.csv"),
        "rehash": ("--model", fitted),
    }
    ran = run(command, tmp_path / "absent", *options.get(command, ()))
    assert_refused(ran, r'there is no collection \S+: create one with "snuh create')
    assert list(tmp_path.iterdir()) == []
    if command == "search":
        assert_refused(run_process("search", tmp_path / "absent", "x"), r"there is no collection")


def test_a_malformed_filter_is_shown_with_a_caret_below_the_error(shared_collection: Path) -> None:
    ran = run_process("search", shared_collection, "t1word1", "--where", 'city = "Zürich" and year >> 3')
    assert (ran.code, ran.stdout) == (2, "")
    assert ran.stderr.splitlines() == [
        'snuh: filter, character 27: expected a value, got ">"',
        '  city = "Zürich" and year >> 3',
        "                            ^",
    ]
    assert run("delete", shared_collection, "--where", "year").stderr.splitlines()[-1] == "      ^"


def test_k_above_the_number_of_documents_returns_all(shared_collection: Path) -> None:
    ran = run_process("search", shared_collection, "t1word1", "-k", 1000, "--json")
    assert len(json.loads(ran.stdout)["hits"]) == 120


def test_bytes_that_are_not_utf8_are_refused(shared_collection: Path) -> None:
    for command in ("search", "similar", "delete"):
        done = subprocess.run(
            [sys.executable, "-m", "snuh.cli", command, str(shared_collection), b"\xff"],
            capture_output=True,
            text=True,
            env=environment(),
        )
        assert done.returncode == 2
        assert "expected UTF-8 text, got other bytes" in done.stderr and "Traceback" not in done.stderr


def test_a_source_is_searched_only_with_a_model(world: Path, fitted: Path) -> None:
    assert_refused(run("search", world, "t1word1"), r"is not a collection: .*or name a model with --model")
    for option in (("--where", "a = 1"), ("--rerank", "cosine"), ("--radius", 3), ("--explain",)):
        ran = run("search", world, "t1word1", "--model", fitted, *option)
        assert_refused(ran, rf"{option[0]} needs a collection: create one with")


def test_a_text_above_the_limit_is_refused(collection: Path, fitted: Path, tmp_path: Path) -> None:
    records = [{"id": "short", "text": "t1word1"}, {"id": "long", "text": "t1word1 " * 20}]
    source = write_jsonl(tmp_path / "d.jsonl", records)
    ran = run_process("add", collection, source, "--max-characters", 100)
    assert_refused(ran, r'the document "long" has 160 characters, the limit is 100')
    ran = run("create", tmp_path / "c", "--from", source, "--max-characters", 100)
    assert_refused(ran, r"the limit is 100")  # before anything is learnt
    assert not (tmp_path / "c").exists()
    ran = run("create", tmp_path / "c", "--model", fitted, "--from", source, "--max-characters", 0)
    assert_refused(ran, r"--max-characters must be at least 1, got 0")


CREATE: dict[str, tuple[tuple[str, ...], str]] = {
    "neither": ((), r"needs --from SOURCE, or --model MODEL, or both"),
    "model and bits": (("--model", "{model}", "--bits", "64"), r"--bits is an option for training"),
    "model and seed": (("--model", "{model}", "--seed", "0"), r"--seed is an option for training"),
    "bits": (("--from", "{world}", "--bits", "20"), r"bits must be a multiple of 8"),
    "method": (("--from", "{world}", "--method", "nuh"), r'unknown method "nuh"'),
    "no such source": (("--from", "absent.jsonl"), r"absent\.jsonl: no such file"),
    "no such model": (("--model", "absent"), r"there is no model folder absent"),
}


@pytest.mark.parametrize("case", CREATE)
def test_create_checks_its_options_before_creating_anything(
    case: str, world: Path, fitted: Path, tmp_path: Path
) -> None:
    options, expected = CREATE[case]
    filled = [option.format(world=world, model=fitted) for option in options]
    assert_refused(run("create", tmp_path / "c", *filled), expected)
    assert list(tmp_path.iterdir()) == []


def test_create_refuses_an_existing_path(collection: Path, fitted: Path, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.txt").write_text("miau")
    for path, expected in (
        (collection, r"is a collection already: add to it with"),
        (tmp_path / "photos", r"exists and is not empty"),
        (fitted / "inner", r"is a model and must not contain other files"),
        (collection / "inner", r"is a collection and must not contain other files"),
    ):
        assert_refused(run("create", path, "--model", fitted), expected)


def test_an_invalid_line_keeps_the_documents_added_before(fitted: Path, tmp_path: Path) -> None:
    lines = [json.dumps(record) for record in planted_topics(docs=5)] + ["[]"]
    (tmp_path / "d.jsonl").write_text("\n".join(lines))
    ran = run("create", tmp_path / "c", "--model", fitted, "--from", tmp_path / "d.jsonl")
    assert_refused(ran, r'd\.jsonl line 6: expected a JSON object.*was created: .*then use "snuh add"')


def test_a_matrix_is_refused_as_a_source_of_texts(collection: Path, tmp_path: Path) -> None:
    import numpy as np
    from scipy import sparse
    from scipy.io import savemat

    arrays: dict[str, object] = {}
    for key in ("train", "cv", "test"):
        arrays |= {key: sparse.csr_matrix(np.eye(5)), f"gnd_{key}": np.eye(5)}
    savemat(tmp_path / "rows.mat", arrays)
    assert_refused(run("add", collection, tmp_path / "rows.mat"), r"rows\.mat contains feature rows")


def test_the_model_is_saved_if_the_collection_was_created_by_another_process_during_training(
    world: Path, fitted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = training.train

    def train_while_another_creates(*args: Any, save: Callable[[], None]) -> snuh.Model:
        def save_late() -> None:
            snuh.Collection.create(tmp_path / "c", snuh.load(fitted)).close()
            save()

        return train(*args, save=save_late)

    monkeypatch.setattr(training, "train", train_while_another_creates)
    ran = run("create", tmp_path / "c", "--from", world, "--method", "itq", "--bits", 16)
    assert_refused(ran, r"is a collection already.*the trained model was saved: use --model \S+")
    rescued = Path(ran.stderr.split("--model ")[1].strip())
    try:
        assert snuh.load(rescued).method == "itq"
    finally:
        shutil.rmtree(rescued.parent)
    with snuh.Collection(tmp_path / "c") as other:
        assert other.model.bits == 32
