"""The file of finished runs: nothing is lost, nothing is done twice, and a cut line is noticed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from snuh.errors import InputError
from snuh.experiments.corpora import read_corpus
from snuh.experiments.run import ResultsFile, eta_seconds, read_rows, run_key
from snuh.experiments.runner import execute_run
from tests.cli.running import environment
from tests.experiments.worlds import TINY, finished, tiny_run
from tests.worlds import files_limited_to

ROOT = Path(__file__).parents[2]
RUN = tiny_run(corpus="ng20", parameters={})

HOLD = """
import sys
from pathlib import Path
from snuh.experiments.run import ResultsFile
from snuh.experiments.run import Run
run = Run("ng20", "snuh", 16, 0, "label-free", {}, {})
with ResultsFile(Path(sys.argv[1])) as results, results.claim(run) as is_mine:
    print(is_mine, flush=True)
    sys.stdin.read()
"""


def test_rows_come_back_in_order(tmp_path: Path) -> None:
    path = tmp_path / "new" / "runs.jsonl"
    rows = [finished(0.5), finished(0.6, seed=1)]
    with ResultsFile(path) as results:
        for row in rows:
            results.append(row)
        assert results.rows() == rows
        assert not results.was_truncated
    assert read_rows(path) == rows


def test_a_cut_line_is_left_out_and_taken_away(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    whole, cut = json.dumps(finished(0.5)), json.dumps(finished(0.6, seed=1))
    for end in (cut[:40], cut[:-1], cut):  # a row without its end of line may be cut as well
        path.write_text(f"{whole}\n{end}")
        assert read_rows(path) == [finished(0.5)]
        with ResultsFile(path) as results:
            assert results.was_truncated
            assert results.pending([RUN, tiny_run(corpus="ng20", parameters={}, seed=1)])[0].seed == 1
        assert path.read_text() == f"{whole}\n"


def test_a_row_after_one_that_was_truncated_meanwhile_stands_on_a_line_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    with ResultsFile(path) as results:
        path.write_text(json.dumps(finished(0.5))[:40])  # another process was killed while it wrote
        results.append(finished(0.6))
        assert results.rows() == [finished(0.6)]


def test_a_full_disk_is_told_and_the_file_can_be_used_again(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    with ResultsFile(path) as results:
        results.append(finished(0.5))
        with files_limited_to(path.stat().st_size + 20), pytest.raises(InputError, match="cannot write"):
            results.append(finished(0.6, seed=1))
    with ResultsFile(path) as results:
        results.append(finished(0.6, seed=1))
        assert [row["seed"] for row in results.rows()] == [0, 1]


@pytest.mark.parametrize("line", ["no JSON", "[1, 2]", '{"corpus": "ng20"}', ""])
def test_a_line_that_is_no_row_is_named(line: str, tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text(f"{json.dumps(finished(0.5))}\n{line}\n{json.dumps(finished(0.6))}\n")
    with pytest.raises(InputError, match=r"runs\.jsonl line 2 is not a row of a run"):
        read_rows(path)


def test_a_failed_run_counts_as_done_unless_it_is_retried(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    with ResultsFile(path) as results:
        results.append(finished(None))
        assert results.pending([RUN]) == []
    with ResultsFile(path, retry=True) as results:
        assert results.pending([RUN]) == [RUN]
        results.append(finished(None))
        assert results.pending([RUN]) == []  # tried again once, not for ever


def test_a_run_of_another_process_is_left_to_it_until_that_ends(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    other = tiny_run(corpus="ng20", parameters={}, seed=1)
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "True\n"
        with ResultsFile(path) as results:
            with results.claim(RUN) as is_mine:
                assert not is_mine
            with results.claim(other) as is_mine:
                assert is_mine
            process.kill()
            process.wait()
            with results.claim(RUN) as is_mine:
                assert is_mine


def test_a_run_that_was_finished_meanwhile_is_not_claimed(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    with ResultsFile(path) as results:
        assert results.pending([RUN]) == [RUN]
        with path.open("a") as file:
            file.write(json.dumps(finished(0.5)) + "\n")
        with results.claim(RUN) as is_mine:
            assert not is_mine


def test_runs_on_other_documents_are_refused(tmp_path: Path) -> None:
    with ResultsFile(tmp_path / "runs.jsonl") as results:
        results.append(finished(0.5, corpus_sha256="a" * 64))
        results.append(finished(0.5, corpus="tmc", corpus_sha256="c" * 64))
        results.append(finished(None, seed=1, corpus_sha256="b" * 64))
        results.check_documents("ng20", "a" * 64)
        results.append(finished(0.5, seed=2, corpus_sha256="b" * 64))
        with pytest.raises(
            InputError, match=r"other documents of ng20 \(sha256 bbbbbbbbbbbb, now aaaaaaaaaaaa\)"
        ):
            results.check_documents("ng20", "a" * 64)


def test_runs_on_unknown_documents_are_refused(tmp_path: Path) -> None:
    with ResultsFile(tmp_path / "runs.jsonl") as results:
        results.append(finished(0.5))
        with pytest.raises(InputError, match=r"other documents of ng20 \(sha256 unknown, now aaaaaaaaaaaa\)"):
            results.check_documents("ng20", "a" * 64)


def test_every_fact_of_a_row_is_on_its_page_and_in_the_kept_results(data: Path) -> None:
    names = set(execute_run(tiny_run(), read_corpus("toy", {}), commit=None))
    page = (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")
    _, _, section = page.partition("## The file")
    assert names == set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))
    kept = read_rows(ROOT / "results" / "runs.jsonl")
    assert len(kept) >= 103
    later = {"precision_within_2", "random_precision", "bit_correlation", "derived_parameters"}
    assert all(names - later <= row.keys() <= names for row in kept)


def test_the_time_left_comes_from_the_runs_most_like_those_to_do() -> None:
    rows = [
        finished(0.5, corpus="toy", seconds=10.0),
        finished(0.5, corpus="toy", bits=64, seconds=30.0),
        finished(0.5, corpus="ng20", seconds=50.0),
        finished(0.5, method="snuh-plus", seconds=90.0),
        finished(None, seconds=9_999.0),
    ]
    assert eta_seconds([tiny_run(), tiny_run(bits=64)], rows) == 40.0
    assert eta_seconds([tiny_run(bits=128)], rows) == 20.0  # the same method and corpus
    assert eta_seconds([tiny_run(corpus="tmc")], rows) == 30.0  # the same method
    assert eta_seconds([tiny_run(method="vdsh")], rows) == 40.0  # anything
    assert eta_seconds([tiny_run()], []) is None
    rows.append(finished(0.5, corpus="toy", seconds=1.0, parameters=TINY))
    assert eta_seconds([tiny_run()], rows) == 1.0  # the same in everything but the seed


def test_kept_rows_can_be_read_by_their_keys() -> None:
    rows = read_rows(Path(__file__).parents[2] / "results" / "runs.jsonl")
    assert len({run_key(row) for row in rows}) == len(rows)
