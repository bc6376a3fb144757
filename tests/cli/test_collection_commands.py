"""The life of a collection through the command line: made, filled, searched, changed."""

from __future__ import annotations

import inspect
import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import snuh
from snuh.cli.base_command import MAX_CHARACTERS
from tests.cli.running import environment, run, run_process, start
from tests.cli.test_processes import ENDLESS, run_guarded, wait_for_epoch
from tests.worlds import planted_topics, topic_words, write_jsonl

QUERY = " ".join(topic_words(2)[:6])
ODD_IDS = ["👩‍👩‍👧 family", "שלום עולם", " two  spaces ", "\"'`$(x)", "line\nbreak", "-7", "--help", "日本"]


def run_json(command: str, *arguments: object, stdin: str | None = None) -> Any:
    """Run a command with --json and return what it prints."""
    ran = run(command, "--json", *arguments, stdin=stdin)
    assert ran.code == 0, ran.stderr
    return json.loads(ran.stdout)


def ids(answer: Any) -> list[str]:
    return [hit["id"] for hit in answer["hits"]]


# create


def test_create_trains_and_adds_documents_of_every_split(world: Path, tmp_path: Path) -> None:
    options = ("--bits", 16, "--method", "snuh", "--seed", 3, "--set", "epochs=2")
    made = run_json("create", tmp_path / "c", "--from", world, *options)
    assert (made["inserted"], made["bits"], made["method"]) == (300, 16, "snuh")
    assert (made["fit"]["documents"], made["fit"]["seed"], made["fit"]["epochs"]) == (244, 3, 2)
    assert len(ids(run_json("search", tmp_path / "c", QUERY, "-k", 300))) == 300


def test_create_prints_the_next_steps(fitted: Path, tmp_path: Path) -> None:
    folder = tmp_path / "my tickets"
    ran = run("create", folder, "--model", fitted)
    assert ran.code == 0
    assert "0 documents, 32-bit codes of snuh-plus" in ran.stdout
    assert f"snuh add '{folder}' SOURCE" in ran.stdout
    source = write_jsonl(tmp_path / "d.jsonl", planted_topics(docs=8))
    ran = run("create", tmp_path / "full", "--model", fitted, "--from", source)
    assert "8 documents" in ran.stdout
    assert f"snuh search {tmp_path / 'full'} " in ran.stdout


def test_ctrl_c_during_the_fit_keeps_the_best_model_and_adds_the_documents(
    world: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "c"
    arguments = ("create", folder, "--from", world, "--bits", 16, *ENDLESS)
    with start(*arguments) as process:
        wait_for_epoch(2, process)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr
    assert "interrupted: kept the best model so far" in stderr
    assert "300 documents, 16-bit codes" in stdout
    with snuh.Collection(folder) as opened:
        assert len(opened) == 300
        assert opened.model.training["stopped"] == "interrupted"


def test_only_training_a_collection_imports_torch(fitted: Path, world: Path, tmp_path: Path) -> None:
    folder = tmp_path / "c"
    assert run("create", folder, "--model", fitted, "--from", world).code == 0
    done = run_guarded(
        ("create", tmp_path / "d", "--model", fitted, "--from", folder),
        ("search", folder, QUERY, "--explain", "--rerank", "cosine"),
        ("dedup", folder),
        ("info", folder),
        ("export", folder, "--out", tmp_path / "e.parquet", "--codes"),
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "e.parquet").exists()  # the last one was reached
    done = run_guarded(("create", tmp_path / "e", "--from", world))
    assert "AssertionError: imported" in done.stderr


# add and delete


def test_add_counts_inserted_replaced_and_unknown_documents(collection: Path) -> None:
    records = [
        {"id": "doc-3", "text": QUERY},
        {"id": "new", "text": QUERY},
        {"id": "strange", "text": "unheard words"},
    ]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    ran = run_process("add", collection, "-", "--json", stdin=lines)
    added = json.loads(ran.stdout)
    assert added.pop("seconds") >= 0
    assert added == {
        "collection": str(collection),
        "inserted": 2,
        "replaced": 1,
        "without_known_words": 1,
        "documents": 122,
    }
    assert ran.stderr.startswith("snuh: warning: 1 of 3 documents have no word that the model knows")
    found = ids(run_json("search", collection, QUERY, "-k", 200, "--mode", "codes"))
    assert len(found) == 121 and "strange" not in found
    assert found.index("doc-3") < found.index("new")  # equal codes: the replaced one keeps its position
    assert ids(run_json("search", collection, "unheard", "-k", 1)) == ["strange"]  # by its words
    assert "inserted" in run("add", collection, "-", stdin=lines).stdout


def test_add_reads_other_fields_and_other_collections(collection: Path, fitted: Path, tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "d.jsonl", [{"key": "k1", "body": QUERY, "text": "beside"}])
    assert run_json("add", collection, source, "--text-field", "body", "--id-field", "key")["inserted"] == 1
    run("create", tmp_path / "other", "--model", fitted)
    assert run_json("add", tmp_path / "other", collection)["inserted"] == 121
    with snuh.Collection(tmp_path / "other") as opened, snuh.Collection(collection) as first:
        assert list(opened.documents()) == list(first.documents())


def test_delete_by_ids_and_by_filter(collection: Path) -> None:
    assert run_json("delete", collection, "doc-1", "doc-2", "doc-1")["deleted"] == 2
    assert (
        run_json("delete", collection, "--where", 'city = "Bern" and origin.desk in (0, 1)')["deleted"] == 20
    )
    ran = run("delete", collection, "--where", "year < 2000")
    assert (ran.code, ran.stdout.split()) == (
        0,
        ["deleted", "0", "documents", "remaining", "98", "documents"],
    )


def test_any_text_can_be_an_id(collection: Path, tmp_path: Path) -> None:
    records = [{"id": name, "text": QUERY} for name in ODD_IDS]
    assert run_json("add", collection, write_jsonl(tmp_path / "d.jsonl", records))["inserted"] == len(ODD_IDS)
    found = run_json("search", collection, QUERY, "-k", 128)
    assert [name for name in ids(found) if name in ODD_IDS] == ODD_IDS
    table = run_process("search", collection, QUERY, "-k", 128).stdout
    assert "👩‍👩‍👧 family" in table and "line\N{REPLACEMENT CHARACTER}break" in table
    for name in ODD_IDS:
        assert len(ids(run_json("similar", collection, "-k", 200, "--", name))) == 127
    ran = run_process("delete", collection, "--", *ODD_IDS)
    assert ran.stdout.split()[1] == str(len(ODD_IDS))


# search and similar


def test_search_finds_the_topic_and_orders_by_score(shared_collection: Path) -> None:
    found = run_json("search", shared_collection, QUERY, "-k", 5)
    assert (found["query"], found["bits"], found["note"]) == (QUERY, 32, None)
    assert [hit["labels"] for hit in found["hits"]] == [["topic2"]] * 5
    for measure, options, sign in (("score", (), -1), ("distance", ("--mode", "codes"), 1)):
        hits = run_json("search", shared_collection, QUERY, "-k", 5, *options)["hits"]
        values = [sign * hit[measure] for hit in hits]
        assert values == sorted(values)
    assert found["hits"][0]["metadata"]["origin"]["tags"] == ["new", "näïve"]
    table = run_process("search", shared_collection, QUERY, "-k", 5).stdout
    assert ids(found) == [word for word in table.split() if word.startswith("doc-")]


def test_search_respects_filter_and_radius(shared_collection: Path) -> None:
    found = run_json(
        "search", shared_collection, QUERY, "-k", 200, "--where", 'year >= 2020 and city = "שלום"'
    )
    assert len(found["hits"]) == 20
    assert all(hit["metadata"]["year"] >= 2020 for hit in found["hits"])
    near = run_json("search", shared_collection, QUERY, "-k", 200, "--radius", 6)
    everything = run_json("search", shared_collection, QUERY, "-k", 200, "--mode", "codes")
    assert 0 < len(near["hits"]) < 120 == len(everything["hits"])
    assert ids(near) == [hit["id"] for hit in everything["hits"] if hit["distance"] <= 6]


@pytest.mark.parametrize("by", ["asymmetric", "cosine"])
def test_reranked_hits_are_ordered_by_score(by: str, shared_collection: Path) -> None:
    found = run_json("search", shared_collection, QUERY, "--rerank", by)
    scores = [hit["score"] for hit in found["hits"]]
    assert scores == sorted(scores, reverse=True)
    assert "score" in run("search", shared_collection, QUERY, "--rerank", by).stdout


def test_explain_highlights_words_and_outputs_their_contributions_as_json(
    shared_collection: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = run_json("search", shared_collection, QUERY, "-k", 2, "--explain")
    assert {word["word"] for word in found["hits"][0]["query_words"]} == set(QUERY.split())
    assert set(found["hits"][0]["words"][0]) == {"word", "agreeing", "differing"}
    plain = run("search", shared_collection, QUERY, "-k", 2, "--explain").stdout
    assert plain.startswith("query  ") and "*t2word" in plain and "\x1b[" not in plain
    monkeypatch.setenv("FORCE_COLOR", "1")
    colourful = run("search", shared_collection, QUERY, "-k", 2, "--explain").stdout
    assert "\x1b[1;32mt2word" in colourful and "*t2word" not in colourful


def test_similar_takes_the_same_options_and_excludes_the_document(shared_collection: Path) -> None:
    options = ("-k", 120, "--where", "year >= 2020", "--rerank", "cosine", "--explain")
    found = run_json("similar", shared_collection, "doc-5", *options)
    assert (found["id"], len(found["hits"])) == ("doc-5", 59)
    assert "doc-5" not in ids(found)
    assert found["hits"][0]["labels"] == ["topic1"]
    assert "query_words" in found["hits"][0]


def test_queries_output_one_line_of_json_each(shared_collection: Path, tmp_path: Path) -> None:
    queries = [{"id": "a", "text": QUERY}, {"id": "ü", "text": "unheard"}, {"id": "c", "text": "t1word1"}]
    source = write_jsonl(tmp_path / "q.jsonl", queries)
    ran = run_process("search", shared_collection, "--queries", source, "-k", 3)
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [(answer["query"], len(answer["hits"])) for answer in answers] == [("a", 3), ("ü", 0), ("c", 3)]
    assert answers[0]["hits"] == run_json("search", shared_collection, QUERY, "-k", 3)["hits"]
    assert ran.stderr == "snuh: warning: no hits for ü\n"
    assert answers[1]["note"] == 'no document contains "unheard"'
    piped = run("search", shared_collection, "--queries", "-", "-k", 1, stdin=f"{QUERY}\nt1word1\n").stdout
    assert [json.loads(line)["query"] for line in piped.splitlines()] == ["1", "2"]


def test_results_go_to_stdout_while_progress_bars_are_shown(shared_collection: Path, world: Path) -> None:
    reader, terminal = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "snuh.cli", "search", shared_collection, "--queries", world, "-k", "1"],
        stdout=subprocess.PIPE,
        stderr=terminal,
        text=True,
        env=environment() | {"TERM": "xterm"},
        timeout=120,
    )
    os.close(terminal)
    os.close(reader)
    assert done.returncode == 0
    assert [json.loads(line)["query"] for line in done.stdout.splitlines()][:2] == ["doc-0", "doc-1"]


def test_queries_are_searched_in_batches(
    shared_collection: Path, world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run("search", shared_collection, "--queries", world, "-k", 2).stdout
    monkeypatch.setattr("snuh.cli.search.MAX_QUERIES_PER_BATCH", 7)
    assert run("search", shared_collection, "--queries", world, "-k", 2).stdout == whole
    assert len(whole.splitlines()) == 300


# info and rehash


def test_info_describes_the_collection(shared_collection: Path) -> None:
    found = run_json("info", shared_collection)
    assert (found["documents"], found["searchable"], found["scanned_bytes_per_document"]) == (120, 120, 4)
    assert found["fields"] == ["city", "note", "origin", "year"]
    assert (found["model"]["method"], found["model"]["bits"]) == ("snuh-plus", 32)
    assert (found["model"]["source"], found["model"]["documents"]) == ("topics.jsonl", 244)
    assert found["bytes_per_document"] > 100
    assert found["health"]["documents"] == 120
    text = run_process("info", shared_collection).stdout
    for expected in (
        "120, 120 of them searchable",
        "4 read by a search",
        found["model"]["fingerprint"],
    ):
        assert expected in text


def test_info_reports_problems_of_the_codes(collection: Path, tmp_path: Path) -> None:
    unknown = [{"id": f"u{number}", "text": "unheard"} for number in range(60)]
    same = [{"id": f"s{number}", "text": QUERY} for number in range(60)]
    run("add", collection, write_jsonl(tmp_path / "d.jsonl", [*unknown, *same]))
    text = run("info", collection).stdout
    assert "60 of 240 documents contain no word that the model knows" in text
    with snuh.Collection(collection) as opened:
        known = opened.model.encode([one.text for one in opened.documents() if one.text != "unheard"])
    _, sizes = np.unique(known, axis=0, return_counts=True)  # the sixty, and who happens to share their code
    assert sizes.max() >= 60
    assert f"{sizes.max() / len(known):.0%} of the documents share one code" in text
    run("delete", collection, "--where", "city is not null")
    run("add", collection, write_jsonl(tmp_path / "d.jsonl", [dict(one, id=f"x{one['id']}") for one in same]))
    assert (
        "! 32 of 32 bits are the same for all documents and carry no information"
        in run("info", collection).stdout
    )


def test_an_empty_collection_has_an_info_and_no_hits(fitted: Path, tmp_path: Path) -> None:
    run("create", tmp_path / "c", "--model", fitted)
    assert run_json("info", tmp_path / "c")["health"] is None
    assert run("info", tmp_path / "c").code == 0
    assert run_json("search", tmp_path / "c", QUERY)["hits"] == []


def test_rehash_changes_the_codes_and_keeps_the_documents(
    collection: Path, world: Path, tmp_path: Path
) -> None:
    assert run("fit", collection, "--out", tmp_path / "m", "--bits", 16, "--set", "epochs=1").code == 0
    done = run_json("rehash", collection, "--model", tmp_path / "m")
    assert (done["bits_before"], done["bits"], done["documents"]) == (32, 16, 120)
    assert run_json("search", collection, QUERY)["bits"] == 16
    assert run_json("info", collection)["model"]["source"] == "tickets"
    assert (
        "16 bits of snuh-plus (before: 16 bits)"
        in run("rehash", collection, "--model", tmp_path / "m").stdout
    )


def test_a_collection_is_a_source_for_every_command(
    shared_collection: Path, fitted: Path, tmp_path: Path
) -> None:
    encoded = run_json("encode", fitted, shared_collection, "--out", tmp_path / "codes.npy")
    assert encoded["documents"] == 120
    assert run_json("evaluate", fitted, shared_collection)["source"] == "shared"


def test_the_limit_of_the_command_line_is_that_of_the_library() -> None:
    parameter = inspect.signature(snuh.Collection.add).parameters["max_characters"]
    assert parameter.default == MAX_CHARACTERS
