"""The file of finished runs: one JSON line each, appended to by as many processes as like to work on it.

Beside the file lies a lock file. One byte of it is locked while somebody appends, and one byte for each run
that is under way, at a place that its key names. The system lets go of a process's locks when it ends,
however it ends, so that a run of a killed process is free again.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from snuh.errors import InputError
from snuh.experiments.rows import cut_end, read_rows, unfinished
from snuh.experiments.run import Row, Run
from snuh.io import dump_json, reporting_as_input_error

APPENDING = 0  # the byte to lock for it; those of the runs come after it


class Results:
    """A file to add rows to: `with Results(path) as results`.

    Attributes:
        was_cut: whether the file ended in the middle of a line, which is taken away.
    """

    def __init__(self, path: Path, *, retry: bool = False) -> None:
        self.path = path
        self._retry = retry
        with reporting_as_input_error(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._locks = path.with_name(f".{path.name}.lock").open("ab")
            with self._appending():
                path.touch()
                self.was_cut = _repair(path)
        self._rows_before = len(self.rows())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._locks.close()

    def rows(self) -> list[Row]:
        """Return what is there by now, also from other processes."""
        return read_rows(self.path)

    def missing(self, runs: Sequence[Run]) -> list[Run]:
        """Return the runs that have no row yet; with `retry` also those that had failed before."""
        rows = self.rows()
        before, since = rows[: self._rows_before], rows[self._rows_before :]
        # What fails again meanwhile is not tried a third time.
        return unfinished(unfinished(runs, before, retry=self._retry), since, retry=False)

    @contextmanager
    def claim(self, run: Run) -> Iterator[bool]:
        """Keep a run for this process while the block lasts; False where another has it, or has done it."""
        place = 1 + int.from_bytes(hashlib.sha256(run.key.encode()).digest()[:7])
        try:
            fcntl.lockf(self._locks, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except (BlockingIOError, PermissionError):  # which of them depends on the system
            yield False
            return
        try:
            yield bool(self.missing([run]))
        finally:
            fcntl.lockf(self._locks, fcntl.LOCK_UN, 1, place)

    def append(self, row: Row) -> None:
        """Add one line, and see it on the disk."""
        with reporting_as_input_error(self.path), self._appending():
            _repair(self.path)
            with self.path.open("ab") as file:
                file.write(dump_json(row).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())

    def check_documents(self, corpus: str, sha256: str) -> None:
        """Raise InputError where rows of this corpus come from other documents: their means would mix."""
        rows = [row for row in self.rows() if row["corpus"] == corpus and row["error"] is None]
        others = {row["corpus_sha256"] or "unknown" for row in rows} - {sha256}
        if others:
            raise InputError(
                f"{self.path} holds runs on other documents of {corpus} (sha256 {min(others)[:12]}, now "
                f"{sha256[:12]}): choose another file with --results"
            )

    @contextmanager
    def _appending(self) -> Iterator[None]:
        fcntl.lockf(self._locks, fcntl.LOCK_EX, 1, APPENDING)
        try:
            yield
        finally:
            fcntl.lockf(self._locks, fcntl.LOCK_UN, 1, APPENDING)


def _repair(path: Path) -> bool:
    """Take away a last line that was cut; return whether there was one."""
    content = path.read_bytes()
    cut = cut_end(content)
    if cut:
        os.truncate(path, len(content) - len(cut))
    return bool(cut)
