"""Progress: lines for logs, bars on a terminal."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from snuh.cli.output import Lines, describe_epoch
from snuh.progress import EpochReport, Progress
from tests.cli.running import environment

REPORT = EpochReport(2, {"words": 100.0, "nodes": 0.5}, 0.4, 0.45, alive=True, seconds=1.25)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_an_epoch_names_its_loss_parts_and_scores() -> None:
    line = describe_epoch(REPORT, 20)
    assert line == "epoch 2/20 · loss 100.50 (words 100, nodes 0.5) · score 0.4000 (best 0.4500) · 1.2 s"


def test_an_epoch_of_dead_codes_says_so() -> None:
    dead = EpochReport(1, {"words": 1.0}, 0.1, 0.1, alive=False, seconds=1.0)
    assert "codes not alive yet" in describe_epoch(dead, 2)


def test_logs_get_a_line_every_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    clock = Clock()
    lines = Lines(clock)
    for second in range(25):
        clock.now = float(second)
        lines(Progress("words", second / 25))
    lines(Progress("words", 1.0))
    lines(Progress("rows", 0.5))
    lines(Progress("rows", 1.0))  # too short to speak of
    lines(Progress("training", 0.05))
    lines(Progress("training", 0.1, REPORT))
    lines(Progress("training", 0.12))
    assert stderr.getvalue().splitlines() == [
        "Building the vocabulary: 40%",
        "Building the vocabulary: 80%",
        "Building the vocabulary: done in 24.0 s",
        describe_epoch(REPORT, 20),
    ]


def test_logs_get_the_elapsed_time_where_the_progress_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    clock = Clock()
    lines = Lines(clock)
    for second in range(21):
        clock.now = float(second)
        lines(Progress("training", 0.0))
    lines(Progress("training", 1.0))
    assert stderr.getvalue().splitlines() == [
        "Training: running for 10 s",
        "Training: running for 20 s",
        "Training: done in 20.0 s",
    ]


def test_a_terminal_gets_bars_and_a_pipe_the_result(world: Path, tmp_path: Path) -> None:
    master, slave = pty.openpty()
    command = ["fit", str(world), "--out", str(tmp_path / "m"), "--bits", "16", "--set", "epochs=2", "--json"]
    process = subprocess.Popen(
        [sys.executable, "-m", "snuh.cli", *command],
        stdout=subprocess.PIPE,
        stderr=slave,
        env=environment() | {"TERM": "xterm-256color", "COLUMNS": "100"},
    )
    os.close(slave)
    shown = b""
    while True:
        try:
            chunk = os.read(master, 4096)
        except OSError:  # the terminal is gone once the process is
            break
        if not chunk:
            break
        shown += chunk
    stdout, _ = process.communicate(timeout=60)
    os.close(master)
    text = shown.decode()
    assert process.returncode == 0, text
    for expected in ("Building the vocabulary", "Finding neighbours", "Training", "100%", "epoch 2/2 · loss"):
        assert expected in text
    assert stdout.startswith(b"{") and b"\x1b" not in stdout
