"""Long-running jobs (maps, duplicates, indexes), each a process that leaves its result in a file."""

from __future__ import annotations

import hashlib
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from snuh.collection import Collection, short_name
from snuh.errors import InputError, SnuhError
from snuh.io import atomic_write, read_json, write_json
from snuh.server.job_runner import (
    COLLECTION_VARIABLE,
    EXIT_INPUT,
    FORMAT_VERSION,
    WITH_TITLES,
    without_titles,
)
from snuh.server.requests import ApiError, invalid, json_bytes, unavailable

JobKind = Literal["map", "duplicates", "index"]
MAP_FILE = "map.json"
NOT_SENT = ("format", "version", "computed", "codes")  # parts of a result file
# Seconds that a result is returned although the collection has changed, before it is computed again.
MAX_STALE_SECONDS: dict[JobKind, float] = {"map": 300.0, "duplicates": 5.0, "index": 5.0}
INDEX_RESULT_SECONDS = 30.0  # after that, the same request builds the index again
MAX_BUSY_SECONDS, BUSY_FRACTION = 60.0, 0.5  # of duplicates, per collection: at once, and in the long run
MAX_RUNNING_JOBS, MAX_FINISHED_JOBS, MAX_REASON_CHARACTERS = 2, 50, 500


@dataclass(frozen=True, slots=True)
class JobStatus:
    """An HTTP status and body: 200 with the result, or 202 while the job is running."""

    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class _Job:
    kind: JobKind
    collection: Collection
    process: subprocess.Popen[bytes]
    log: Path
    started: float

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def clean_up(self) -> None:
        """Wait for the process to exit, and delete its log."""
        self.process.communicate()
        self.log.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class _Busy:
    """How long searches for duplicates have run lately: their durations, which decay as time passes."""

    seconds: float
    updated: float

    def seconds_at(self, now: float) -> float:
        return max(0.0, self.seconds - BUSY_FRACTION * (now - self.updated))


class Jobs:
    """Starts jobs whose results are missing or out of date, and returns the results.

    Args:
        scratch: folder for results, logs and lock files.
        seconds: time limit of a job.
    """

    def __init__(self, scratch: Path, *, seconds: int) -> None:
        self._scratch, self._seconds = scratch, seconds
        self._lock = threading.Lock()  # each collection calls from its own thread
        self._jobs: dict[Path, _Job] = {}  # running, or finished and not yet reported; by result file
        self._results: dict[Path, tuple[int, dict[str, Any]]] = {}  # (modification time, content)
        self._busy: dict[str, _Busy] = {}  # with duplicates, by collection
        self._titled: dict[Path, tuple[int, str, dict[str, Any]]] = {}  # the same with titles, at a version

    def get(
        self, kind: JobKind, collection: Collection, options: Mapping[str, Any] | None = None
    ) -> JobStatus:
        """Return the result of a job; if there is none, start the job."""
        out, version = self.result_path(kind, collection, options or {}), collection.version()
        with self._lock:
            result = self._read_result(out)
            age = 0.0 if result is None else time.time() - result.get("computed", 0.0)
            is_current = result is not None and result.get("version") == version
            is_stale = not is_current and age > MAX_STALE_SECONDS[kind]
            if result is None or (kind == "index" and (is_stale or age > INDEX_RESULT_SECONDS)):
                seconds = self._ensure_running(kind, collection, out, options or {})
                running = {"state": "running", "seconds": round(seconds, 1), "done": self._done(out)}
                return JobStatus(202, json_bytes(running))
            if is_stale:
                with suppress(ApiError):  # the stale result is returned in the meantime
                    self._ensure_running(kind, collection, out, options or {})
            result = self._with_titles(kind, collection, out, version)
        content = {name: value for name, value in result.items() if name not in NOT_SENT}
        return JobStatus(200, json_bytes({"state": "ready", "current": is_current, **content}))

    def stored_map(self, collection: Collection) -> dict[str, Any]:
        """Return the ids, positions and codes of the documents on the map; 503 if there is none yet."""
        with self._lock:
            result = self._read_result(self.result_path("map", collection, {}))
        if result is None:
            raise unavailable("there is no map yet: request it first")
        return result

    def _done(self, out: Path) -> float:
        """Return the fraction of a running job that is done, which its process writes into the lock file."""
        try:
            return float(self.lock_path(out).read_text(encoding="utf-8") or 0.0)
        except (OSError, ValueError):  # it has just started, or finished
            return 0.0

    def _with_titles(self, kind: JobKind, collection: Collection, out: Path, version: str) -> dict[str, Any]:
        """Add titles of the documents as they are now; documents that are gone are removed from the file."""
        modified, result = self._results[out]
        if kind not in WITH_TITLES:
            return result
        known = self._titled.get(out)
        if known is None or known[:2] != (modified, version):
            titled = WITH_TITLES[kind](collection, result)
            if (stored := without_titles(kind, titled)) != result:
                with suppress(SnuhError), atomic_write(out) as temporary:  # not in a read-only folder
                    write_json(temporary, stored)
                modified = out.stat().st_mtime_ns
                self._results[out] = (modified, stored)
            known = self._titled[out] = (modified, version, titled)
        return known[2]

    @property
    def running(self) -> int:
        """The number of running jobs."""
        return sum(job.is_running for job in list(self._jobs.values()))

    def close(self) -> None:
        """Stop all jobs."""
        for job in self._jobs.values():
            job.process.kill()
            job.clean_up()

    def result_path(self, kind: JobKind, collection: Collection, options: Mapping[str, Any]) -> Path:
        """Return the result file of a job; maps are stored in the collection's folder if possible."""
        folder = collection.folder
        if kind == "map" and folder is not None and os.access(folder, os.W_OK):
            return folder / MAP_FILE
        key = json.dumps([kind, collection.name, options], sort_keys=True)
        return self._scratch / f"{kind}-{_short_hash(key)}.json"

    def lock_path(self, out: Path) -> Path:
        """Return the file that a process locks while it writes this result file."""
        return self._scratch / f"{_short_hash(str(out))}.lock"

    def _read_result(self, out: Path) -> dict[str, Any] | None:
        try:
            modified = out.stat().st_mtime_ns
        except FileNotFoundError:
            return None
        if out not in self._results or self._results[out][0] != modified:
            try:
                result = read_json(out)
            except InputError:  # damaged: the job runs again
                return None
            if not isinstance(result, dict) or result.get("format") != FORMAT_VERSION:
                return None
            self._results[out] = (modified, result)
        return self._results[out][1]

    def _ensure_running(
        self, kind: JobKind, collection: Collection, out: Path, options: Mapping[str, Any]
    ) -> float:
        """Start the job unless it is running, and return its age in seconds; raise its error if it failed."""
        job = self._jobs.get(out)
        if job is not None and not job.is_running:
            del self._jobs[out]
            error = _job_error(job, self._seconds) if job.process.returncode else None
            job.clean_up()
            if error is not None:
                raise error
            job = None
        if job is None:
            if sum(other.is_running for other in self._jobs.values()) >= MAX_RUNNING_JOBS:
                raise ApiError(429, "rate", "other jobs are running: try again when they are done")
            if kind == "duplicates":
                self._check_busy(collection)
            self._prune()
            job = self._jobs[out] = self._start(kind, collection, out, options)
            if kind == "duplicates":
                threading.Thread(target=self._measure, args=(job,), daemon=True).start()
        return time.monotonic() - job.started

    def _check_busy(self, collection: Collection) -> None:
        """Raise a 429 error if searches for duplicates with ever new options would keep a core busy."""
        now, busy = time.monotonic(), self._busy.get(collection.name)
        seconds = 0.0 if busy is None else busy.seconds_at(now)
        seconds += sum(
            now - job.started
            for job in self._jobs.values()
            if job.kind == "duplicates" and job.is_running and job.collection.name == collection.name
        )
        excess = seconds - MAX_BUSY_SECONDS
        if excess > 0:
            wait = math.ceil(excess / BUSY_FRACTION)
            message = f"too many searches for duplicates: retry in {wait} s"
            raise ApiError(429, "rate", message, headers={"retry-after": str(wait)})

    def _measure(self, job: _Job) -> None:
        """Wait for a job, and add its duration to those of the collection."""
        job.process.wait()
        now, name = time.monotonic(), job.collection.name
        with self._lock:
            before = self._busy[name].seconds_at(now) if name in self._busy else 0.0
            self._busy[name] = _Busy(before + now - job.started, now)

    def _prune(self) -> None:
        """Delete old results and errors, to bound the use of memory and disk."""
        finished = [out for out, job in self._jobs.items() if not job.is_running]
        failed = [out for out in finished if self._jobs[out].process.returncode]
        for out in {*finished} - {*failed[-MAX_FINISHED_JOBS:]}:
            self._jobs.pop(out).clean_up()
        results = sorted(self._scratch.glob("*-*.json"), key=lambda path: path.stat().st_mtime)
        for path in results[:-MAX_FINISHED_JOBS]:
            path.unlink(missing_ok=True)
            self._results.pop(path, None)
            self._titled.pop(path, None)

    def _start(self, kind: JobKind, collection: Collection, out: Path, options: Mapping[str, Any]) -> _Job:
        lock = self.lock_path(out)
        log = lock.with_suffix(f".{os.getpid()}.log")
        with log.open("wb") as stderr:
            arguments = [kind, str(out), str(lock), str(self._seconds), json.dumps(options)]
            process = subprocess.Popen(
                [sys.executable, "-m", "snuh.server.job_runner", *arguments],
                stdin=subprocess.PIPE,  # closed when this process exits, which ends the job
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                env={
                    **os.environ,
                    "OMP_NUM_THREADS": "1",
                    "NUMBA_NUM_THREADS": "1",
                    COLLECTION_VARIABLE: str(collection.location),
                },
            )
        return _Job(kind, collection, process, log, time.monotonic())


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _job_error(job: _Job, seconds: int) -> ApiError:
    """Return the error of a failed job, with the last line of its log as the reason."""
    if job.process.returncode == -signal.SIGALRM:
        return unavailable(f"the job exceeded its limit of {seconds:,} seconds")
    lines = job.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    name = short_name(job.collection.location)
    reason = lines[-1].replace(job.collection.name, name) if lines else "the process was killed"
    if job.process.returncode == EXIT_INPUT:
        return invalid(reason)
    return unavailable(f"the job failed: {reason[:MAX_REASON_CHARACTERS]}")
