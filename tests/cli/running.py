"""Running the command line: in this process for speed, or as a real one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from snuh.cli.app import app

SOURCES = Path(__file__).parents[2] / "src"

# The command as if a package were not installed.
WITHOUT_PACKAGE = """
import sys
package = sys.argv.pop(1)
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name == package:
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)
sys.meta_path.insert(0, Absent())
from snuh.cli import main
main()
"""


@dataclass(frozen=True)
class Ran:
    code: int
    stdout: str
    stderr: str

    @property
    def complaints(self) -> list[str]:
        """The lines of stderr that are neither progress nor warnings."""
        lines = [line for line in self.stderr.splitlines() if line.startswith("snuh: ")]
        notices = ("snuh: warning: ", "snuh: compiling kernels")
        return [line for line in lines if not line.startswith(notices)]


def run(*arguments: object, stdin: str | None = None) -> Ran:
    """Run in this process; a bug is raised as it is."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ran(result.exit_code, result.stdout, result.stderr)


def run_without(package: str, *arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run as a real process in which a package is not installed."""
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_PACKAGE, package, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment() | variables,
        timeout=60,
    )


def environment() -> dict[str, str]:
    """Return the variables for a real process, small and without the caller's terminal."""
    variables = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    return variables | {"PYTHONPATH": str(SOURCES), "OMP_NUM_THREADS": "1"}


def run_process(*arguments: object, stdin: str = "") -> Ran:
    """Run as a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "snuh.cli", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=True,
        env=environment(),
        timeout=120,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def start(*arguments: object, stdin: int | None = None, **variables: str) -> subprocess.Popen[str]:
    """Start as a process that Ctrl-C reaches: a test run in the background ignores it, as would its children.

    A child begins with the default for signals that its parent handles, and ignores those that its parent
    ignores; so SIGINT is handled while it starts. (With a preexec_fn gRPC writes to the child's stderr.)
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "snuh.cli", *map(str, arguments)],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment() | variables,
        )
    finally:
        signal.signal(signal.SIGINT, before)


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder with its bytes."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
