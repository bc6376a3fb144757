"""Documents that repeat another one, found and dropped through the command line."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

import snuh
from tests.cli.running import Ran, run, run_process
from tests.cli.test_collection_commands import run_json
from tests.worlds import planted_topics, write_jsonl


@pytest.fixture
def copies(collection: Path, tmp_path: Path) -> Path:
    """The collection with three more copies of doc-1, one of them with a word more, and one of doc-2."""
    texts = {record["id"]: record["text"] for record in planted_topics(docs=4)}
    new = [
        {"id": "copy-1", "text": texts["doc-1"], "year": 2016},
        {"id": "copy-2", "text": texts["doc-1"] + " unheard", "year": 2016},
        {"id": "copy-3", "text": texts["doc-1"], "year": 1999},
        {"id": "copy-4", "text": texts["doc-2"], "year": 1999},
    ]
    assert run("add", collection, write_jsonl(tmp_path / "copies.jsonl", new)).code == 0
    return collection


def actions(path: Path) -> dict[str, str]:
    """Return what a file of duplicates says of each document."""
    with path.open(newline="") as file:
        rows: list[dict[str, Any]] = (
            list(csv.DictReader(file)) if path.suffix == ".csv" else [json.loads(line) for line in file]
        )
    assert all(
        list(row) == ["id", "action", "cluster", "representative", "similarity", "distance"] for row in rows
    )
    return {row["id"]: row["action"] for row in rows}


COPIES = {
    "doc-1": "keep",
    "copy-1": "drop",
    "copy-2": "drop",
    "copy-3": "drop",
    "doc-2": "keep",
    "copy-4": "drop",
}


@pytest.mark.parametrize("name", ["d.csv", "d.jsonl"])
def test_duplicates_are_found_and_nothing_is_deleted(name: str, copies: Path, tmp_path: Path) -> None:
    ran = run_process("dedup", copies, "--threshold", 0.9, "--out", tmp_path / name)
    assert (ran.code, ran.stderr) == (0, "")
    assert "4 (3.2%), in 2 clusters" in ran.stdout
    assert "doc-1" in ran.stdout and "copy-1, copy-2, copy-3" in ran.stdout
    assert actions(tmp_path / name) == COPIES
    assert run_json("info", copies)["documents"] == 124


def test_drop_deletes_the_duplicates(copies: Path) -> None:
    found = run_json("dedup", copies, "--threshold", 0.9, "--keep", "longest", "--drop")
    assert (found["deleted"], found["duplicates"], found["left"]) == (4, 4, 120)
    with snuh.Collection(copies) as opened:
        assert "copy-2" in opened and "doc-1" not in opened
    again = run_json("dedup", copies, "--threshold", 0.9)
    assert (again["duplicates"], again["clusters"], again["largest"]) == (0, 0, [])


def test_groups_targets_and_overlap(copies: Path, tmp_path: Path) -> None:
    options = ("--threshold", 0.9, "--out", tmp_path / "d.csv")
    run_json("dedup", copies, *options, "--group-by", "year")
    assert actions(tmp_path / "d.csv") == {"doc-1": "keep", "copy-1": "drop", "copy-2": "drop"}
    assert run_json("dedup", copies, *options, "--target", 122)["left"] == 122
    assert run_json("dedup", copies, *options, "--measure", "overlap", "--radius", 0)["duplicates"] == 4


def test_a_source_needs_a_model_or_trains_one(fitted: Path, tmp_path: Path) -> None:
    records = planted_topics(docs=60)
    source = write_jsonl(tmp_path / "d.jsonl", [*records, {"id": "copy", "text": records[7]["text"]}])
    found = run_json("dedup", source, "--model", fitted, "--threshold", 0.9)
    assert [one["id"] for one in found["largest"][0]] == ["doc-7", "copy"]
    ran = run("dedup", source, "--threshold", 0.9, "--json")
    assert json.loads(ran.stdout)["duplicates"] == 1
    assert ran.stderr.startswith("snuh: no --model given: training a 64-bit model first\n")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--group-by", "yeer"), 'no document of tickets has a field "yeer" (did you mean "year"?)'),
        (("--keep", "best"), 'keep must be first, last or longest, got "best"'),
        (("--measure", "cosin"), "cosin"),
        (("--threshold", "1.5"), "threshold"),
        (("--radius", "-1"), "radius"),
        (("--out", "d.txt"), "d.txt: duplicates are written to files ending in .jsonl, .csv"),
    ],
)
def test_bad_options_delete_nothing(options: tuple[str, ...], expected: str, copies: Path) -> None:
    assert_refused(run("dedup", copies, "--drop", *options), expected)
    assert run_json("info", copies)["documents"] == 124


def test_the_report_never_replaces_its_source(fitted: Path, tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "d.jsonl", planted_topics(docs=20, seed=1))
    before = source.read_bytes()
    (tmp_path / "link.jsonl").symlink_to(source)
    for out in (source, tmp_path / "link.jsonl"):
        ran = run("dedup", source, "--model", fitted, "--out", out)
        assert (ran.code, "it is the source, which would be overwritten" in ran.stderr) == (2, True)
    assert source.read_bytes() == before


def test_nothing_is_dropped_from_a_source(world: Path, fitted: Path) -> None:
    ran = run_process("dedup", world, "--model", fitted, "--drop")
    assert_refused(ran, "--drop deletes from a collection, and")


def assert_refused(ran: Ran, expected: str) -> None:
    assert (ran.code, ran.stdout) == (2, "")
    assert len(ran.complaints) == 1 and expected in ran.complaints[0], ran.stderr
