"""A run is one fit of one method on one corpus; a row is its line in a results file."""

from __future__ import annotations

import hashlib
import json
import os
import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias, cast, get_args

from snuh.errors import NEEDS_POSIX, InputError, SnuhError, suggest
from snuh.io import dump_json, reporting_as_input_error

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]

Select = Literal["label-free", "labels"]
"""What selects the epoch: a held-out score without labels or, as in the paper, the validation labels."""

Artifact = Literal["codes", "examples", "map"]
"""What a run stores besides its metrics: nothing, documents of the case study, or points of a map."""

Row: TypeAlias = dict[str, Any]  # a line of a results file, decoded

KEY_FIELDS = ("corpus", "method", "bits", "seed", "select", "parameters", "features", "artifact", "documents")
REQUIRED_FIELDS = (*KEY_FIELDS, "corpus_sha256", "precision", "seconds", "error")


@dataclass(frozen=True)
class Run:
    """A run to do; `parameters` and `features` hold only the settings that differ from the defaults."""

    corpus: str
    method: str
    bits: int
    seed: int
    select: Select
    parameters: Mapping[str, Any]
    features: Mapping[str, Any]
    artifact: Artifact = "codes"
    documents: int | None = None  # train on the first n documents of the corpus; None: all

    def __str__(self) -> str:
        settings = "".join(f" {name}={value}" for name, value in self.parameters.items())
        docs = f" {self.documents} documents" if self.documents else ""
        return f"{self.corpus} {self.method} {self.bits} bits seed {self.seed}{settings}{docs}"

    @property
    def key(self) -> str:
        """The key that identifies this run."""
        return run_key(asdict(self))


class FailedFitError(SnuhError):
    """A fit without usable codes."""


def check_completed(stopped: str) -> None:
    """Raise if training did not end normally: it was interrupted by Ctrl-C, or diverged."""
    if stopped == "interrupted":
        raise KeyboardInterrupt
    if stopped == "diverged":
        raise FailedFitError("the loss did not stay finite")


def run_key(row: Mapping[str, Any]) -> str:
    """Return the key of the run that a row belongs to."""
    return json.dumps([_normalize(row[name]) for name in KEY_FIELDS], sort_keys=True)


def check_select(value: str) -> Select:
    """Return `value` as a protocol, or raise InputError."""
    names = get_args(Select)
    if value not in names:
        raise InputError(f'select must be one of {", ".join(names)}, got "{value}"{suggest(value, names)}')
    return cast(Select, value)


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a results file.

    An incomplete last line is ignored, so reading needs no lock while other processes append.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    complete = content.removesuffix(incomplete_line(content))
    return [
        _parse_row(line, f"{path} line {number}")
        for number, line in enumerate(complete.splitlines(), start=1)
    ]


def latest_rows(rows: Sequence[Row]) -> dict[str, Row]:
    """Return rows by the key of their run; of several rows of a run the last one counts."""
    return {run_key(row): row for row in rows}


def pending_runs(runs: Sequence[Run], rows: Sequence[Row], *, retry: bool) -> list[Run]:
    """Return the runs without a row; with `retry`, also those whose rows all have an error."""
    finished = {run_key(row) for row in rows if row["error"] is None or not retry}
    return [run for run in runs if run.key not in finished]


def incomplete_line(content: bytes) -> bytes:
    """Return what follows the last newline: a complete row ends with one."""
    return content[content.rfind(b"\n") + 1 :]


def _parse_row(line: bytes, location: str) -> Row:
    try:
        row = json.loads(line)
    except ValueError:
        row = None
    if not isinstance(row, dict) or any(name not in row for name in REQUIRED_FIELDS):
        raise InputError(f"{location} is not a row of a run: remove the line, or choose another file")
    if row["select"] not in get_args(Select):
        raise InputError(
            f'{location} has the protocol "{row["select"]}", expected one of {", ".join(get_args(Select))}: '
            "it was written by another version of snuh, choose another file"
        )
    return row


def _normalize(value: Any) -> Any:  # any JSON value
    """Make 1.0 and 1 the same setting."""
    if isinstance(value, Mapping):
        return {name: _normalize(item) for name, item in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value


APPEND_LOCK_OFFSET = 0  # the locks of the runs follow it


class ResultsFile:
    """A results file to append rows to: `with ResultsFile(path) as results`.

    Any number of processes may append. A lock file lies next to it: its first byte is locked while a process
    appends, and one byte per run, at an offset derived from the run's key, while that run is in progress. The
    system releases the locks of a process however it ends, so the run of a killed process becomes available
    again.

    Attributes:
        was_truncated: whether the file ended with an incomplete line, which is removed.
    """

    def __init__(self, path: Path, *, retry: bool = False) -> None:
        if fcntl is None:
            raise InputError(NEEDS_POSIX.format("running experiments"))
        self.path = path
        self._retry = retry
        with reporting_as_input_error(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock_file = path.with_name(f".{path.name}.lock").open("ab")
            with self._append_lock():
                path.touch()
                self.was_truncated = _repair(path)
        self._initial_rows = len(self.rows())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock_file.close()

    def rows(self) -> list[Row]:
        """Return the current rows, including those of other processes."""
        return read_rows(self.path)

    def pending(self, runs: Sequence[Run]) -> list[Run]:
        """Return the runs without a row; with `retry`, also those that had failed before."""
        rows = self.rows()
        before, since = rows[: self._initial_rows], rows[self._initial_rows :]
        # A run that fails again is not retried a second time.
        return pending_runs(pending_runs(runs, before, retry=self._retry), since, retry=False)

    @contextmanager
    def claim(self, run: Run) -> Iterator[bool]:
        """Reserve a run for this process; yields False if another process has it or has finished it."""
        offset = 1 + int.from_bytes(hashlib.sha256(run.key.encode()).digest()[:7])
        try:
            fcntl.lockf(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, offset)
        except (BlockingIOError, PermissionError):  # which of them depends on the system
            yield False
            return
        try:
            yield bool(self.pending([run]))
        finally:
            fcntl.lockf(self._lock_file, fcntl.LOCK_UN, 1, offset)

    def append(self, row: Row) -> None:
        """Append one row and flush it to disk."""
        with reporting_as_input_error(self.path), self._append_lock():
            _repair(self.path)
            with self.path.open("ab") as file:
                file.write(dump_json(row).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())

    def check_documents(self, corpus: str, sha256: str) -> None:
        """Raise InputError if rows of this corpus come from other documents: means would mix them."""
        rows = [row for row in self.rows() if row["corpus"] == corpus and row["error"] is None]
        others = {row["corpus_sha256"] or "unknown" for row in rows} - {sha256}
        if others:
            raise InputError(
                f"{self.path} has runs on other documents of {corpus} (sha256 {min(others)[:12]}, now "
                f"{sha256[:12]}): choose another file with --results"
            )

    @contextmanager
    def _append_lock(self) -> Iterator[None]:
        fcntl.lockf(self._lock_file, fcntl.LOCK_EX, 1, APPEND_LOCK_OFFSET)
        try:
            yield
        finally:
            fcntl.lockf(self._lock_file, fcntl.LOCK_UN, 1, APPEND_LOCK_OFFSET)


def eta_seconds(runs: Sequence[Run], rows: Sequence[Row]) -> float | None:
    """Estimate how long the runs take one after the other; None without a finished run to go on."""
    timed = [row for row in rows if row["error"] is None]
    return sum(_estimate_seconds(run, timed) for run in runs) if timed else None


def _estimate_seconds(run: Run, rows: Sequence[Row]) -> float:
    """Return the median duration of the most similar finished runs."""
    names = ["method", "documents", "corpus", "bits", "parameters"]
    for count in range(len(names), -1, -1):
        similar = [
            row["seconds"]
            for row in rows
            if all(row.get(name) == getattr(run, name) for name in names[:count])
        ]
        if similar:
            return float(statistics.median(similar))
    raise ValueError("no rows to estimate from")


def _repair(path: Path) -> bool:
    """Remove an incomplete last line; return whether there was one."""
    content = path.read_bytes()
    incomplete = incomplete_line(content)
    if incomplete:
        os.truncate(path, len(content) - len(incomplete))
    return bool(incomplete)
