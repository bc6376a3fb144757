"""`snuh tune`: trials that can be gone on with, and settings that a fit bears out."""

from __future__ import annotations

import json
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest

import snuh
from tests.cli.running import Ran, run, run_without, start
from tests.worlds import planted_topics, write_jsonl

TINY = ("--method", "snuh", "--bits", 16, "--set", "epochs=2", "--set", "trees=2")
ITQ = ("--method", "itq", "--bits", 16)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own to run in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def tune(*options: object) -> Ran:
    ran = run("tune", *options)
    assert ran.code == 0, ran.stderr
    return ran


def settings(path: str = "settings.json") -> dict[str, Any]:
    content: dict[str, Any] = json.loads(Path(path).read_text())
    return content


def refused(*options: object) -> str:
    ran = run("tune", *options)
    assert (ran.code, len(ran.complaints)) == (2, 1), ran.stderr
    return ran.complaints[0]


def test_the_defaults_are_tried_first_and_the_best_is_never_below_them(world: Path) -> None:
    ran = tune(world, *TINY, "--trials", 4, "--json")
    summary = json.loads(ran.stdout)
    first, *others = re.findall(r"^trial \d: .*$", ran.stderr, re.M)
    assert re.match(r"trial 1: score 0\.\d{4} in \d+ s with the defaults; best .*; 3 to do, about", first)
    assert len(others) == 3 and "learning_rate=" in others[0]
    assert summary["trials"] == 4
    assert summary["score"] >= summary["defaults_score"]
    assert summary["gain"] == pytest.approx(summary["score"] - summary["defaults_score"])
    assert summary["parameters"].items() >= {"epochs": 2, "trees": 2}.items()
    written = settings()
    assert written["parameters"] == summary["parameters"]
    assert written["origin"]["score"] == summary["score"]


def test_a_fit_takes_the_settings_found(world: Path) -> None:
    tune(world, *TINY, "--trials", 3, "--seed", 5, "--set", "features.max_terms=150")
    found = settings()
    assert run("fit", world, "--config", "settings.json", "--out", "tuned").code == 0
    given = [part for name, value in found["parameters"].items() for part in ("--set", f"{name}={value}")]
    typed = ("--method", "snuh", "--bits", 16, "--seed", 5, "--set", "features.max_terms=150", *given)
    assert run("fit", world, "--out", "typed", *typed).code == 0
    texts = [document.text for document in snuh.open_source(world)]
    assert (snuh.load("tuned").encode(texts) == snuh.load("typed").encode(texts)).all()


def test_labels_of_val_compare_settings_by_what_a_fit_reaches(world: Path) -> None:
    summary = json.loads(tune(world, *ITQ, "--trials", 3, "--select", "labels", "--json").stdout)
    assert run("fit", world, "--config", "settings.json", "--out", "model").code == 0
    measured = run("evaluate", "model", world, "--query-split", "val", "--cutoffs", 100, "--json")
    assert json.loads(measured.stdout)["precision"]["100"] == pytest.approx(summary["score"])


def test_a_study_is_gone_on_with(world: Path) -> None:
    assert len(re.findall("^trial", tune(world, *ITQ, "--trials", 2).stderr, re.M)) == 2
    again = tune(world, *ITQ, "--trials", 3)
    assert re.findall(r"^trial (\d)", again.stderr, re.M) == ["3"]
    before = Path("settings.study.jsonl").read_bytes()
    assert "trial" not in tune(world, *ITQ, "--trials", 3).stderr
    assert Path("settings.study.jsonl").read_bytes() == before


def test_a_small_grid_ends_when_all_was_tried(world: Path) -> None:
    assert json.loads(tune(world, *ITQ, "--json").stdout)["trials"] == 5


def test_feature_rows_can_be_tuned(tmp_path: Path) -> None:
    from scipy.io import savemat
    from scipy.sparse import random as random_rows

    rows = {name: random_rows(80, 50, density=0.2, rng=seed) for seed, name in enumerate(("train", "test"))}
    labels = {f"gnd_{name}": [[number % 2, 1 - number % 2] for number in range(80)] for name in rows}
    savemat(tmp_path / "rows.mat", rows | labels)
    tune("rows.mat", *ITQ, "--trials", 2)
    assert "features.max_terms is for texts" in refused(
        "rows.mat", *ITQ, "--set", "features.max_terms=5", "--out", "b.json"
    )
    assert "needs documents of the split val" in refused(
        "rows.mat", *ITQ, "--select", "labels", "--out", "c.json"
    )


def test_a_study_of_something_else_is_refused(world: Path, tmp_path: Path) -> None:
    tune(world, *ITQ, "--trials", 1)
    before = Path("settings.study.jsonl").read_bytes()
    other = write_jsonl(tmp_path / "other.jsonl", planted_topics(seed=1))
    asked: list[tuple[tuple[object, ...], str]] = [
        ((other, *ITQ), "sha256"),
        ((world, "--method", "itq", "--bits", 24), "bits 16, now it is 24"),
        ((world, "--method", "sph", "--bits", 16), 'method "itq", now it is "sph"'),
        ((world, *ITQ, "--select", "labels"), 'select "label-free", now it is "labels"'),
        ((world, *ITQ, "--seed", 1), "seed 0, now it is 1"),
        ((world, *ITQ, "--set", "features.max_terms=99"), "features {}, now it is"),
    ]
    for options, complaint in asked:
        assert complaint in refused(*options)
    assert Path("settings.study.jsonl").read_bytes() == before


def test_what_is_fixed_belongs_to_the_study(world: Path) -> None:
    tune(world, *TINY, "--trials", 1)
    assert 'set {"epochs": 2, "trees": 2}, now' in refused(world, *TINY[:-1], "trees=3")


def test_other_files_are_never_replaced(world: Path) -> None:
    Path("notes.json").write_text('{"mine": 1}')
    assert "is not a settings file" in refused(world, *ITQ, "--out", "notes.json")
    assert "must end in .json" in refused(world, *ITQ, "--out", "notes.toml")
    before = world.read_bytes()
    assert "is not a study" in refused(world, *ITQ, "--study", world)
    assert world.read_bytes() == before


def test_failed_trials_are_told_and_never_the_best(tmp_path: Path) -> None:
    few = write_jsonl(tmp_path / "few.jsonl", planted_topics(docs=5))
    ran = tune(few, "--method", "snuh", "--bits", 8, "--set", "epochs=2", "--trials", 12, "--json")
    summary = json.loads(ran.stdout)
    assert re.search("^trial 1: failed: .*neighbors.* with the defaults; 11 to do", ran.stderr, re.M)
    assert summary["failed"] >= 1
    assert (summary["defaults_score"], summary["gain"]) == (None, None)
    assert summary["parameters"]["neighbors"] < 5


def test_where_all_trials_fail_nothing_is_written(tmp_path: Path) -> None:
    few = write_jsonl(tmp_path / "few.jsonl", planted_topics(docs=15))
    options = ("--method", "snuh", "--bits", 8, "--set", "neighbors=20", "--trials", 2)
    assert "all 2 trials failed, the first: " in refused(few, *options)
    assert not Path("settings.json").exists()


def test_without_time_nothing_is_written(world: Path) -> None:
    assert "no time for a trial" in refused(world, *ITQ, "--minutes", 0)
    assert not Path("settings.json").exists()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--method", "lsh", "--bits", 16), "lsh cannot be tuned"),
        (("--method", "itq", "--bits", 20), "multiple of 8"),
        ((*ITQ, "--select", "label"), 'select must be one of label-free, labels, got "label"'),
        ((*ITQ, "--seed", -1), "seed must be"),
        ((*ITQ, "--out", "."), "--out must end in .json"),
        ((*ITQ, "--set", "iteration=3"), 'has no "iteration" (did you mean "iterations"?)'),
        ((*ITQ, "--set", "features.max_term=3"), 'has no "max_term" (did you mean "max_terms"?)'),
    ],
)
def test_a_bad_option_is_one_clear_line(options: tuple[object, ...], complaint: str, world: Path) -> None:
    assert complaint in refused(world, *options)
    assert not list(Path().iterdir())


def test_the_missing_extra_is_named(world: Path) -> None:
    done = run_without("optuna", "tune", str(world), "--bits", "16")
    assert (done.returncode, done.stderr) == (2, 'snuh: tuning needs Optuna: pip install "snuhash[tune]"\n')


def test_ctrl_c_keeps_the_study_and_writes_the_best_so_far(world: Path) -> None:
    with start("tune", world, *TINY, "--trials", 1000) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("trial 3:"):
                break
        process.send_signal(signal.SIGINT)
        time.sleep(0.01)
        process.send_signal(signal.SIGINT)  # a second one costs nothing
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr
    assert "snuh: interrupted: the best settings so far are written; the same command resumes" in stderr
    assert "Traceback" not in stderr
    done = settings()["origin"]["trials"]
    assert done >= 3 and f"{done}, " in stdout
    assert json.loads(tune(world, *TINY, "--trials", done + 1, "--json").stdout)["trials"] == done + 1


def test_ctrl_c_in_the_first_trial_writes_no_settings(world: Path) -> None:
    study, endless = Path("settings.study.jsonl"), ("--set", "patience=100000", "--set", "epochs=100000")
    options = ("--method", "snuh", "--bits", 16, "--set", "trees=2", *endless)
    with start("tune", world, *options) as process:
        while process.poll() is None and not (study.exists() and b"datetime_start" in study.read_bytes()):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    assert not Path("settings.json").exists()
