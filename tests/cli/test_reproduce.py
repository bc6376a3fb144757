"""`snuh reproduce`: runs what is missing, goes on where it was stopped, shares the work, prints the table."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from snuh.experiments.run import read_rows, run_key
from snuh.experiments.runner import TARGETS
from tests.cli.running import Ran, environment, run, run_without, start
from tests.cli.test_processes import run_guarded
from tests.experiments.worlds import data_folder, finished, write_corpus

TINY = ("--method", "snuh", "--set", "epochs=2", "--set", "neighbors=5", "--set", "trees=2")
TOY = ("table1", "--corpus", "toy", *TINY)
FILE = Path("results/runs.jsonl")


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that SNUH_DATA names, with the corpus toy; commands run in its parent folder."""
    monkeypatch.chdir(tmp_path)
    folder = data_folder(tmp_path)
    monkeypatch.setenv("SNUH_DATA", str(folder))
    return folder


def reproduce(*options: object) -> Ran:
    ran = run("reproduce", *options)
    assert ran.code == 0, ran.stderr
    return ran


def rows(path: Path = FILE) -> list[dict[str, Any]]:
    return read_rows(path)


def test_runs_print_the_table_and_a_second_call_runs_nothing() -> None:
    first = reproduce(*TOY, "--bits", "8,16", "--seeds", 0, "--seeds", 1)
    assert Counter((row["bits"], row["seed"]) for row in rows()) == Counter(
        {(8, 0): 1, (16, 0): 1, (8, 1): 1, (16, 1): 1}
    )
    assert "4 runs requested; 4 to do\n" in first.stderr
    assert re.search(
        r"^toy snuh 8 bits seed 0 epochs=2 .*: precision@100 0\.\d{4} in \d+ s; 3 to do, about",
        first.stderr,
        re.M,
    )
    assert re.search(r"^\| toy +\| snuh +\| \*\*\.\d{3}\*\* ± \.\d{3} \(2\) +\|", first.stdout, re.M)
    before = FILE.read_bytes()
    second = reproduce(*TOY, "--bits", "8,16", "--seeds", "0,1")
    assert "4 runs requested; 0 to do\n" in second.stderr
    assert (second.stdout, FILE.read_bytes()) == (first.stdout, before)
    assert reproduce(*TOY, "--bits", "8,16", "--seeds", "0,1", "--table").stdout == first.stdout


def test_goes_on_where_it_was_stopped_and_repairs_a_cut_line() -> None:
    reproduce(*TOY, "--bits", 8, "--seeds", "0,1")
    whole = FILE.read_bytes()
    FILE.write_bytes(whole[:-30])
    ran = reproduce(*TOY, "--bits", 8, "--seeds", "0,1")
    assert "snuh: warning: the last line of results/runs.jsonl was incomplete" in ran.stderr
    assert "2 runs requested; 1 to do" in ran.stderr
    assert [row["seed"] for row in rows()] == [0, 1]
    assert rows()[1]["precision"] == json.loads(whole.splitlines()[1])["precision"]


def test_two_processes_share_the_work(data: Path) -> None:
    command = [sys.executable, "-m", "snuh.cli", "reproduce", *TOY, "--bits", "8,16", "--seeds", "0,1"]
    workers = [
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment() | {"SNUH_DATA": str(data)},
        )
        for _ in range(2)
    ]
    outputs = [worker.communicate(timeout=120) for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0], outputs
    keys = [run_key(row) for row in rows()]
    assert len(keys) == len(set(keys)) == 4
    done = sum(len(re.findall("^toy snuh .* precision", stderr, re.M)) for _, stderr in outputs)
    assert done == 4


def test_ctrl_c_keeps_finished_runs_and_no_other(data: Path) -> None:
    reproduce(*TOY, "--bits", 8, "--seeds", 0)
    before = FILE.read_bytes()
    endless = ("--set", "epochs=100000", "--set", "patience=100000")
    command = ("reproduce", "table1", "--corpus", "toy", "--method", "snuh", "--bits", "8", *endless)
    with start(*command, "--set", "neighbors=5", SNUH_DATA=str(data)) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("3 runs requested; 3 to do")
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (130, "")
    assert stderr.endswith(
        "snuh: interrupted: finished runs are in results/runs.jsonl, the same command resumes\n"
    )
    assert FILE.read_bytes() == before


def test_the_two_protocols_are_runs_and_tables_of_their_own() -> None:
    label_free = reproduce(*TOY, "--bits", 16, "--seeds", 0)
    by_labels = reproduce(*TOY, "--bits", 16, "--seeds", 0, "--select", "labels")
    assert [row["select"] for row in rows()] == ["label-free", "labels"]
    assert "A fit sees no labels" in label_free.stdout
    assert "The paper's protocol" in by_labels.stdout
    assert all("(1)" in ran.stdout for ran in (label_free, by_labels))


def test_settings_come_from_a_file_and_options_go_first() -> None:
    Path("tuned.json").write_text(
        json.dumps({"method": "snuh", "bits": 8, "parameters": {"epochs": 2, "neighbors": 5, "trees": 3}})
    )
    few = ("table1", "--corpus", "toy", "--seeds", 0, "--config", "tuned.json")
    reproduce(*few)
    reproduce(*few, "--bits", 16, "--set", "trees=2")
    assert [(row["method"], row["bits"], row["parameters"]["trees"]) for row in rows()] == [
        ("snuh", 8, 3),
        ("snuh", 16, 2),
    ]


def test_settings_are_kept_with_the_run() -> None:
    reproduce(*TOY, "--bits", 16, "--seeds", 0, "--set", "features.max_terms=60")
    row = rows()[0]
    assert row["parameters"] == {"epochs": 2, "neighbors": 5, "trees": 2}
    assert row["features"] == {"max_terms": 60} and row["all_features"]["max_terms"] == 60
    assert "1 to do" in reproduce(*TOY, "--bits", 16, "--seeds", 0).stderr


def test_quick_is_a_small_part_that_options_can_change(data: Path) -> None:
    write_corpus(data / "ng20.jsonl.gz", docs=200)
    reproduce("table1", "--quick", *TINY)
    assert [(row["corpus"], row["bits"], row["seed"]) for row in rows()] == [("ng20", 16, 0), ("ng20", 64, 0)]
    reproduce("table1", "--quick", "--corpus", "toy", *TINY)
    assert [(row["corpus"], row["bits"]) for row in rows()[2:]] == [("toy", 16), ("toy", 64)]


def test_targets_share_runs() -> None:
    options = (*TOY[1:], "--bits", 8, "--seeds", 0)
    reproduce("table1", *options)
    sweep = reproduce("tau", *options)
    assert "5 runs requested; 4 to do" in sweep.stderr
    assert [row["all_parameters"]["tau"] for row in rows()] == [0.1, 0.05, 0.2, 0.5, 1.0]
    assert "\ntoy snuh 8 bits seed 0 epochs=2 neighbors=5 trees=2 tau=0.5: precision@100" in sweep.stderr
    assert re.findall(r"^\| ([\w. ()]+?) +\| \**\.\d{3}\** \(1\) +\|$", sweep.stdout, re.M) == [
        "0.05",
        "0.1 (default)",
        "0.2",
        "0.5",
        "1.0",
    ]
    ablation = reproduce("table2", *options)
    assert "3 runs requested; 2 to do" in ablation.stderr
    assert [row["all_parameters"]["correlation"] for row in rows()[5:]] == ["none", "prior"]
    assert re.findall(r"^\| toy +\| (\w+) +\| \**\.\d{3}\** \(1\) +\|$", ablation.stdout, re.M) == [
        "SNUH_ind",
        "SNUH_prior",
        "SNUH",
    ]
    assert reproduce("table2", *options, "--table").stdout == ablation.stdout


def test_a_quick_sweep_takes_every_second_value(data: Path) -> None:
    write_corpus(data / "ng20.jsonl.gz", docs=200)
    reproduce("trees", "--quick", "--set", "epochs=2", "--set", "neighbors=5")
    assert {(row["corpus"], row["method"], row["bits"], row["seed"]) for row in rows()} == {
        ("ng20", "snuh", 64, 0)
    }
    used = [(row["all_parameters"]["correlation"], row["all_parameters"]["trees"]) for row in rows()]
    assert used == [("none", 20), ("encoder", 2), ("encoder", 10), ("encoder", 20)]


def test_a_run_that_fails_stops_no_other_and_is_done_again_only_when_asked(data: Path) -> None:
    write_corpus(data / "few.jsonl.gz", docs=40)
    command = ("table1", "--corpus", "few,toy", "--method", "snuh", "--bits", 8, "--seeds", 0)
    command += ("--set", "epochs=2", "--set", "trees=2", "--set", "neighbors=50", "--results", "mine.jsonl")
    ran = reproduce(*command)
    assert [row["error"] is None for row in rows(Path("mine.jsonl"))] == [False, True]
    failed = "few snuh 8 bits seed 0 epochs=2 trees=2 neighbors=50"
    assert f"{failed}: failed: expected more documents than neighbors (50)" in ran.stderr
    assert f"snuh: warning: 1 run failed, such as {failed}; --retry" in ran.stderr
    assert "1 failed" in ran.stdout
    again = reproduce(*command)
    assert "0 to do" in again.stderr and "1 run failed" in again.stderr
    write_corpus(data / "few.jsonl.gz", docs=200)
    retried = reproduce(*command, "--retry")
    assert "1 to do" in retried.stderr and "failed" not in retried.stderr + retried.stdout
    assert [row["corpus"] for row in rows(Path("mine.jsonl"))] == ["few", "toy", "few"]


def test_other_documents_of_the_same_name_are_refused(data: Path) -> None:
    reproduce(*TOY, "--bits", 8, "--seeds", 0)
    write_corpus(data / "toy.jsonl.gz", docs=200, seed=1)
    ran = run("reproduce", *TOY, "--bits", 8, "--seeds", 1)
    assert ran.code == 2
    assert "results/runs.jsonl has runs on other documents of toy" in ran.complaints[0]


REFUSED = {
    "unknown target": (("tabel1",), r'unknown target "tabel1" \(did you mean "table1"\?\)'),
    "unknown method": (("table1", "--method", "snu"), r'unknown method "snu" \(did you mean "snuh"\?\)'),
    "unknown corpus": (
        ("table1", "--corpus", "toi"),
        r'no file, folder or corpus "toi" \(did you mean "toy"\?\); SNUH_DATA holds: toy$',
    ),
    "unknown protocol": ((*TOY, "--select", "label"), r'select must be .*\(did you mean "labels"\?\)'),
    "unknown parameter": ((*TOY, "--set", "neighbours=3"), r'no "neighbours" \(did you mean "neighbors"\?\)'),
    "unknown feature": (
        (*TOY, "--set", "features.max_term=3"),
        r'no "max_term" \(did you mean "max_terms"\?\)',
    ),
    "bad parameter": ((*TOY, "--set", "tau=-1"), r"tau must be above 0, got -1"),
    "bad bits": ((*TOY, "--bits", "20"), r"bits must be a multiple of 8 from 8 to 512, got 20"),
    "no number": ((*TOY, "--seeds", "0-2"), r'--seeds expects integers separated by commas, got "0-2"'),
    "other methods in the ablation": (
        ("table2", "--method", "snuh-plus"),
        r"table2 compares variants of snuh, got snuh-plus: use table1",
    ),
    "the ablation's parameter": (
        ("table2", "--set", "correlation=prior"),
        r"table2 sets correlation itself: remove it from --set or from the settings file",
    ),
    "a sweep of a method without the parameter": (
        ("tau", "--method", "vdsh"),
        r"tau varies a parameter that vdsh does not have: choose a method that has it",
    ),
    "a sweep of two methods": (
        ("beta", "--method", "snuh,vdsh"),
        r"beta takes one method at a time, got snuh, vdsh",
    ),
    "a sweep's parameter": (
        ("neighbors", "--set", "neighbors=5"),
        r"neighbors sets neighbors itself: remove it from --set or from the settings file",
    ),
    "no file yet": (("table1", "--table"), r"cannot read results/runs\.jsonl: No such file"),
    "a folder": ((*TOY, "--results", "data"), r"cannot read data: Is a directory"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_work_is_refused_before_anything_is_written(case: str) -> None:
    options, expected = REFUSED[case]
    ran = run("reproduce", *options)
    assert ran.code == 2 and ran.stdout == ""
    assert len(ran.complaints) == 1 and re.search(expected, ran.complaints[0]), ran.stderr
    assert not FILE.parent.exists()


def test_a_table_of_a_corpus_without_runs_suggests_the_nearest() -> None:
    Path("runs.jsonl").write_text(json.dumps(finished(0.5)) + "\n")
    ran = run("reproduce", "table1", "--table", "--results", "runs.jsonl", "--corpus", "ng2")
    assert (ran.code, ran.complaints) == (
        2,
        ['snuh: runs.jsonl has no run on the corpus "ng2" (did you mean "ng20"?)'],
    )


def test_a_corpus_without_a_split_is_refused(data: Path) -> None:
    lines = ({"text": f"some words {number}", "labels": ["a"], "split": "train"} for number in range(30))
    (data / "bare.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    ran = run("reproduce", "table1", "--corpus", "bare", *TINY)
    assert ran.code == 2
    assert ran.complaints[-1] == (
        "snuh: bare must have the splits train, val, test, got train: add val and test"
    )


def test_a_method_whose_extra_is_missing_is_refused(data: Path) -> None:
    done = run_without("torch", "reproduce", *TOY, SNUH_DATA=str(data))
    assert done.returncode == 2
    assert done.stderr == 'snuh: training needs PyTorch: pip install "snuhash[train]"\n'
    assert not FILE.parent.exists()


def test_help_says_what_each_target_is() -> None:
    text = run("reproduce", "--help").stdout
    arguments = text.partition("Arguments")[2].partition("Options")[0]
    assert re.findall(r"([\w-]+): ", arguments) == [*TARGETS, "search"]


def test_help_and_table_need_no_torch() -> None:
    Path("runs.jsonl").write_text(json.dumps(finished(0.5)) + "\n")
    assert run_guarded(("reproduce", "--help")).returncode == 0
    for target in ("table1", "table2"):
        done = run_guarded(("reproduce", target, "--table", "--results", "runs.jsonl"))
        assert done.returncode == 0, done.stderr
        assert "**.500** (1)" in done.stdout


def test_the_table_of_searches_comes_from_its_own_file() -> None:
    measures = {"ndcg_at_10": 0.5, "average_precision": 0.25, "recall_at_100": 0.75}
    row = {"corpus": "med", "bits": 64, "seed": 0, "searches": {"hybrid": measures}}
    Path("found.jsonl").write_text(json.dumps(row) + "\n")
    ran = run("reproduce", "search", "--table", "--results", "found.jsonl")
    assert "| hybrid | 64 | .500 / .250 / .750 | .500 / .250 / .750 |" in ran.stdout
    assert run("reproduce", "search", "--method", "lsh").code == 2
