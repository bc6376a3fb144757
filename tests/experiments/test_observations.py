"""What runs look at: documents at growing distance, maps, parts of a corpus, the time of stages."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from snuh.errors import InputError
from snuh.experiments.corpora import Corpus, read_corpus, read_titles, title
from snuh.experiments.maps import same_label
from snuh.experiments.measure import measure
from snuh.experiments.rows import read_rows
from snuh.experiments.run import run_key
from snuh.experiments.stages import StageClock
from snuh.methods import make
from snuh.progress import Progress
from tests.experiments.worlds import tiny_run


@pytest.fixture
def toy(data: Path) -> Corpus:
    return read_corpus("toy", {})


def test_examples_are_documents_ever_further_from_the_query(toy: Corpus) -> None:
    row = measure(tiny_run(method="itq", parameters={}, seed=2, observe="examples"), toy, commit=None)
    encoder = make("itq", bits=16, seed=2, parameters={}).fit(toy.splits["train"].X).encoder_
    train, test = toy.splits["train"], toy.splits["test"]
    query = np.unpackbits(encoder.encode(test.X[[2]]))
    distances = (np.unpackbits(encoder.encode(train.X), axis=1) != query).sum(1)
    found = row["observed"]["documents"]
    assert row["observed"]["query"]["labels"] == list(test.labels[2])
    assert [doc["distance"] for doc in found] == sorted(doc["distance"] for doc in found)
    assert {doc["distance"] for doc in found} <= set(distances.tolist())
    assert found[0]["distance"] == distances[np.argmin(abs(distances - 0))]
    assert all(doc["title"] for doc in found)
    assert json.loads(json.dumps(row)) == row  # can be kept as a line


def test_a_map_has_a_point_for_each_test_document(toy: Corpus) -> None:
    row = measure(tiny_run(method="itq", parameters={}, observe="map"), toy, commit=None)
    points, names = row["observed"]["points"], row["observed"]["labels"]
    labels = [min(labels) for labels in toy.splits["test"].labels]
    assert [names[number] for _, _, number in points] == labels
    assert np.min(points) >= 0 and np.max(points) == 1_000
    assert same_label(points) == 0.4  # of the ten nearest the four others of a topic, and there are no more


def test_same_label_counts_the_nearest_points() -> None:
    apart = [[x, 0, 0] for x in range(20)] + [[x, 900, 1] for x in range(20)]
    mixed = [[x, y, y] for x in range(20) for y in (0, 1)]
    assert same_label(apart) == 1
    assert same_label(mixed) < 0.6


def test_same_label_takes_points_that_are_as_near_in_no_order() -> None:
    around = [[0, 0, 0]] + [[3 * x, 4 * y, 1 if x > 0 else 0] for x in (-1, 1) for y in (-1, 1)] * 3
    # From the centre, ten of twelve points that are all as near, half of them of its label.
    others = [same_label([*around[:1], *around[1:][turn:], *around[1:][:turn]]) for turn in range(12)]
    assert others == [pytest.approx(others[0])] * 12


def test_a_run_on_a_part_trains_on_the_first_documents(toy: Corpus) -> None:
    row = measure(tiny_run(method="itq", parameters={}, documents=50), toy, commit=None)
    assert (row["train_documents"], row["documents"], row["candidates"]) == (50, 50, {})
    assert toy.first(50).splits["train"].ids == toy.splits["train"].ids[:50]
    assert toy.first(100_000) is toy.first(None) is toy


def test_runs_that_differ_in_what_they_look_at_are_different_runs() -> None:
    assert len({tiny_run().key, tiny_run(observe="map").key, tiny_run(documents=9).key}) == 3


def test_times_of_stages_and_epochs_are_kept(toy: Corpus) -> None:
    row = measure(tiny_run(), toy, commit=None)
    assert {"similarity", "graph", "training"} <= row["stage_seconds"].keys()
    assert 0 < row["epoch_seconds"] < row["stage_seconds"]["training"]
    assert sum(row["stage_seconds"].values()) <= row["seconds"] + 0.01


def test_the_clock_passes_reports_on() -> None:
    seen: list[Progress] = []
    clock = StageClock(seen.append)
    for done in (0.0, 1.0):
        clock(Progress("graph", done))
    assert [progress.done for progress in seen] == [0.0, 1.0]
    assert clock.seconds["graph"] > 0


def test_titles_are_subjects_or_first_lines(data: Path) -> None:
    assert title("From: a@b.c\nSubject: Re: a question\n\nthe text") == "Re: a question"
    assert title("\n  Profits rise\nmore") == "Profits rise"
    assert len(title("word " * 100)) <= 90
    assert title("") == ""
    known = read_corpus("toy", {}).splits["test"].ids[0]
    assert list(read_titles("toy", {known})) == [known]
    with pytest.raises(InputError, match="nothing"):
        read_titles("nothing", {known})


def test_kept_rows_can_be_read_by_their_keys() -> None:
    rows = read_rows(Path(__file__).parents[2] / "results" / "runs.jsonl")
    assert len({run_key(row) for row in rows}) == len(rows)
