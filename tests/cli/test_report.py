"""`snuh report`: writes the page and the summary, says where, and needs neither PyTorch nor the corpora."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import run, run_without
from tests.cli.test_processes import run_guarded
from tests.experiments.report.worlds import Rows, everything, page_of

ROOT = Path(__file__).parents[2]


def write(path: Path, rows: Rows) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_the_page_and_the_summary_are_written_beside_each_other(tmp_path: Path) -> None:
    results, out = write(tmp_path / "runs.jsonl", everything()), tmp_path / "new" / "report.html"
    ran = run("report", "--results", results, "--out", out)
    assert ran.code == 0 and str(out) in ran.stdout and str(out.with_suffix(".md")) in ran.stdout
    assert out.read_text().replace(str(results), "runs.jsonl") == page_of(everything())
    assert out.with_suffix(".md").read_text().startswith("# The paper's experiments, reproduced\n")
    assert {path.name for path in out.parent.iterdir()} == {"report.html", "report.md"}


def test_the_report_imports_neither_torch_nor_scikit_learn(tmp_path: Path) -> None:
    results = write(tmp_path / "runs.jsonl", everything())
    done = run_guarded(("report", "--results", results, "--out", tmp_path / "report.html"))
    assert done.returncode == 0, done.stderr


def test_the_kept_report_is_what_the_kept_runs_give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    ran = run("report", "--results", "results/runs.jsonl", "--out", tmp_path / "report.html")
    assert ran.code == 0, ran.stderr
    for name in ("report.html", "report.md"):
        kept = (ROOT / "results" / name).read_bytes()
        assert (tmp_path / name).read_bytes() == kept, 'run "snuh report" again'


def test_the_report_never_replaces_its_runs(tmp_path: Path) -> None:
    results = write(tmp_path / "runs.md", everything())
    before = results.read_bytes()
    ran = run("report", "--results", results, "--out", tmp_path / "runs.html")
    assert ran.code == 2 and "it is the source, which would be overwritten" in ran.complaints[0]
    assert results.read_bytes() == before


def test_what_cannot_be_reported_is_one_clear_line(tmp_path: Path) -> None:
    empty, out = write(tmp_path / "empty.jsonl", []), tmp_path / "report.html"
    complaints = {
        ("--results", empty): "has no runs to report",
        ("--results", tmp_path / "absent.jsonl"): "cannot read",
        ("--results", write(tmp_path / "other.jsonl", [{"a": 1}])): "line 1 is not a row of a run",
        ("--results", write(tmp_path / "old.jsonl", [everything()[0] | {"select": "score"}])): (
            'line 1 has the protocol "score", expected one of label-free, labels'
        ),
        ("--out", tmp_path / "report.md"): "--out expects a file ending in .html",
    }
    for arguments, complaint in complaints.items():
        ran = run("report", "--out", out, *arguments)
        assert ran.code == 2 and len(ran.complaints) == 1 and complaint in ran.complaints[0]
        assert not out.exists()


def test_the_missing_extra_is_named() -> None:
    done = run_without("matplotlib", "report")
    expected = 'snuh: the report needs matplotlib: pip install "snuhash[experiments]"\n'
    assert (done.returncode, done.stderr) == (2, expected)
