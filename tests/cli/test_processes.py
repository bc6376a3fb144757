"""What only a real process shows: imports, speed, Ctrl-C, broken pipes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import snuh
from snuh.cli.training import train
from snuh.corpus import MatrixSource, TextSource
from snuh.hasher import TextHasher
from snuh.progress import OnProgress
from tests.cli.running import environment, start

# Fails the process the moment anything imports what only training may need.
GUARD = """
import json, sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "sklearn"):
            raise AssertionError("imported " + name)
sys.meta_path.insert(0, Refuse())
exec(sys.argv[2])
from snuh.cli import main
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["snuh", *arguments]
    try:
        main()
    except SystemExit as done:
        if done.code:
            raise
"""


# Importing what is None raises ModuleNotFoundError.
WITHOUT_EXTRAS = "sys.modules['numba'] = sys.modules['llvmlite'] = sys.modules['pyarrow'] = None"


def run_guarded(*commands: tuple[object, ...], before: str = "") -> subprocess.CompletedProcess[str]:
    """Run commands in one process, one after the other, until one of them fails."""
    arguments = [list(map(str, command)) for command in commands]
    return subprocess.run(
        [sys.executable, "-c", GUARD, json.dumps(arguments), before],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=120,
    )


def test_only_training_imports_torch_and_scikit_learn(fitted: Path, world: Path, tmp_path: Path) -> None:
    done = run_guarded(
        ("--help",),
        ("fit", "--help"),
        ("methods",),
        ("encode", fitted, world, "--out", tmp_path / "codes.parquet"),
        ("evaluate", fitted, world),
        ("search", world, "t1word1", "--model", fitted),
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "codes.parquet").exists() and "t1word1" in done.stdout
    # The guard can fail: training does import them.
    assert "AssertionError: imported" in run_guarded(("fit", world, "--out", tmp_path / "m")).stderr


def test_the_base_installation_gives_the_results_of_the_full_one(
    fitted: Path, world: Path, tmp_path: Path
) -> None:
    def commands(folder: Path) -> list[tuple[object, ...]]:
        collection = folder / "c"
        return [
            ("create", collection, "--from", world, "--model", fitted),
            ("encode", fitted, world, "--out", folder / "codes.jsonl"),
            ("evaluate", fitted, world, "--json"),
            ("index", collection),
            ("search", collection, "t1word1", "--json"),
            ("search", collection, "t1word1", "--mode", "codes", "--approximate", "--json"),
            ("similar", collection, "doc-3", "--json"),
            ("search", collection, "t2word2", "--mode", "hybrid", "--explain"),
        ]

    base = run_guarded(*commands(tmp_path / "base"), before=WITHOUT_EXTRAS)
    full = run_guarded(*commands(tmp_path / "full"), before="import numba")  # so that it is used at once
    assert base.returncode == full.returncode == 0, base.stderr
    printed, expected = (
        [line for line in done.stdout.splitlines() if not line.startswith("seconds")] for done in (base, full)
    )
    assert [line.replace("/base/", "/full/") for line in printed] == expected
    assert (tmp_path / "base/codes.jsonl").read_text() == (tmp_path / "full/codes.jsonl").read_text()


def test_a_missing_package_is_named_with_its_extra(fitted: Path, world: Path, tmp_path: Path) -> None:
    parquet = run_guarded(("encode", fitted, world, "--out", tmp_path / "c.parquet"), before=WITHOUT_EXTRAS)
    assert parquet.returncode == 2 and "snuhash[parquet]" in parquet.stderr.splitlines()[-1]
    dedup = run_guarded(("dedup", world, "--model", fitted), before=WITHOUT_EXTRAS)
    assert dedup.returncode == 2 and "snuhash[fast]" in dedup.stderr.splitlines()[-1]
    (tmp_path / "documents.parquet").write_bytes(b"PAR1")
    reading = run_guarded(("evaluate", fitted, tmp_path / "documents.parquet"), before=WITHOUT_EXTRAS)
    assert reading.returncode == 2 and "snuhash[parquet]" in reading.stderr.splitlines()[-1]


def test_help_imports_nothing_heavy() -> None:
    heavy = ("numpy", "scipy", "torch", "sklearn", "numba", "pyarrow")
    program = f"import sys, snuh.cli.app; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment(), check=True
    )
    assert done.stdout.strip() == "[]"


def start_fit(source: object, out: Path, *options: str) -> subprocess.Popen[str]:
    return start("fit", source, "--out", out, "--bits", 16, *options, stdin=subprocess.PIPE)


ENDLESS = ("--set", "epochs=100000", "--set", "patience=100000")


def wait_for_epoch(number: int, process: subprocess.Popen[str]) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith(f"epoch {number}/"):
            return


def test_ctrl_c_keeps_the_best_model_so_far(world: Path, tmp_path: Path) -> None:
    with start_fit(world, tmp_path / "model", *ENDLESS) as process:
        wait_for_epoch(2, process)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr
    assert "snuh: interrupted: kept the best model so far" in stderr
    assert "Traceback" not in stderr
    assert "(interrupted)" in stdout
    model = snuh.load(tmp_path / "model")
    assert model.training["stopped"] == "interrupted"
    assert model.training["epochs"] >= 2


@pytest.mark.parametrize("seconds", [0.005, 0.02])
def test_a_second_ctrl_c_does_not_lose_the_model(seconds: float, world: Path, tmp_path: Path) -> None:
    with start_fit(world, tmp_path / "model", *ENDLESS) as process:
        wait_for_epoch(3, process)
        process.send_signal(signal.SIGINT)
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr
    assert "snuh: interrupted: kept the best model so far" in stderr
    assert snuh.load(tmp_path / "model").training["stopped"] == "interrupted"


class InterruptedAtTheEnd(TextHasher):
    """Gets a Ctrl-C when training is over and its codes are counted, and one while it is saved."""

    def fit_source(
        self, source: TextSource | MatrixSource, *, on_progress: OnProgress | None = None
    ) -> InterruptedAtTheEnd:
        super().fit_source(source, on_progress=on_progress)
        signal.raise_signal(signal.SIGINT)
        return self

    def save(self, folder: Path | str) -> None:
        signal.raise_signal(signal.SIGINT)
        super().save(folder)


def test_ctrl_c_after_the_last_epoch_does_not_lose_the_model(world: Path, tmp_path: Path) -> None:
    hasher = InterruptedAtTheEnd(bits=16, parameters={"epochs": 1})
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        train(hasher, snuh.open_source(world), save=lambda: hasher.save(tmp_path / "model"))
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN  # the command is on its way out
    finally:
        signal.signal(signal.SIGINT, before)
    assert snuh.load(tmp_path / "model").training["stopped"] == "epochs"


def test_ctrl_c_before_the_first_epoch_writes_nothing(tmp_path: Path) -> None:
    with start_fit("-", tmp_path / "model") as process:
        assert process.stdin is not None
        # More than a pipe holds: once it is written, the process is reading, and waits for an end.
        process.stdin.write('{"text": "some words"}\n' * 50_000)
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)
        stdout, stderr = process.communicate()
    assert process.returncode == 130, stderr
    assert stdout == ""
    assert stderr == "snuh: interrupted before the end of the first epoch: nothing was written\n"
    assert list(tmp_path.iterdir()) == []


def test_a_closed_pipe_is_not_an_error(fitted: Path, world: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    commands: list[tuple[object, ...]] = [
        ("--help",),
        ("methods",),
        ("methods", "--json"),
        ("evaluate", fitted, world),
    ]
    for command in commands:
        done = subprocess.run(
            [sys.executable, "-m", "snuh.cli", *map(str, command)],
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
            timeout=60,
        )
        assert done.stderr == ""
        assert done.returncode == -signal.SIGPIPE  # 141 in a shell
    os.close(writing)


def test_a_bug_exits_1_with_its_traceback() -> None:
    program = (
        "import snuh.methods as m; from snuh.cli import main; import sys\n"
        "m.METHODS = None\nsys.argv = ['snuh', 'methods']\nmain()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment(), timeout=60
    )
    assert done.returncode == 1
    assert "Traceback" in done.stderr
