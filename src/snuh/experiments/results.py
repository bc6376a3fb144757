"""The results file: one JSON line per finished run, appended to by any number of processes.

A lock file lies beside it. Its first byte is locked while a process appends, and one byte per run, at an
offset derived from the run's key, while that run is in progress. The system releases the locks of a process
however it ends, so the run of a killed process becomes available again.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from snuh.errors import InputError
from snuh.experiments.run import Row, Run, incomplete_line, pending_runs, read_rows
from snuh.io import dump_json, reporting_as_input_error

APPEND_LOCK_OFFSET = 0  # the locks of the runs follow it


class ResultsFile:
    """A results file to append rows to: `with ResultsFile(path) as results`.

    Attributes:
        was_truncated: whether the file ended with an incomplete line, which is removed.
    """

    def __init__(self, path: Path, *, retry: bool = False) -> None:
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
