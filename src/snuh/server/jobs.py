"""Processes that make what takes long, and the files in which it is kept."""

from __future__ import annotations

import hashlib
import json
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
from snuh.errors import InputError
from snuh.io import read_json
from snuh.server.errors import Refusal, invalid, json_bytes, unavailable
from snuh.server.job_runner import ADDRESS, EXIT_INPUT, FORMAT_VERSION

Kind = Literal["map", "duplicates", "lists"]
MAP_FILE = "map.json"
REMADE_AFTER: dict[Kind, float] = {"map": 300.0, "duplicates": 5.0, "lists": 5.0}  # seconds, after a write
TOLD_FOR = 30.0  # seconds: lists are made anew for whoever asks later, whatever has changed
MAX_RUNNING_JOBS, MAX_FINISHED_JOBS, MAX_REASON = 2, 50, 500


@dataclass(frozen=True, slots=True)
class Answered:
    """What there is now: the thing itself, or that it is being made."""

    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class _Running:
    collection: Collection
    process: subprocess.Popen[bytes]
    log: Path
    since: float

    def end(self) -> None:
        """Bury the process, and drop its log."""
        self.process.communicate()
        self.log.unlink(missing_ok=True)


class Jobs:
    """Starts a process where something is missing or old."""

    def __init__(self, scratch: Path, *, seconds: int) -> None:
        self._scratch, self._seconds = scratch, seconds
        self._turn = threading.Lock()  # collections have threads of their own
        self._running: dict[Path, _Running] = {}
        self._read: dict[Path, tuple[int, dict[str, Any]]] = {}  # what was read, and the file's time

    def get(self, kind: Kind, collection: Collection, options: Mapping[str, Any] | None = None) -> Answered:
        """Return what was made of a collection; where it was not, start to make it."""
        out, version = self._place(kind, collection, options or {}), collection.version()
        with self._turn:
            found = self._find(out)
            age = 0.0 if found is None else time.time() - self._read[out][0] / 1e9
            is_current = found is not None and found.get("version") == version
            is_old = not is_current and age > REMADE_AFTER[kind]
            if found is None or (kind == "lists" and (is_old or age > TOLD_FOR)):
                seconds = self._make(kind, collection, out, options or {})
                return Answered(202, json_bytes({"state": "making", "seconds": round(seconds, 1)}))
            if is_old:
                with suppress(Refusal):  # what is there is answered meanwhile
                    self._make(kind, collection, out, options or {})
        told = {name: value for name, value in found.items() if name not in ("format", "version")}
        return Answered(200, json_bytes({"state": "ready", "current": is_current, **told}))

    def close(self) -> None:
        """Stop what is being made."""
        for running in self._running.values():
            running.process.kill()
            running.end()

    def _place(self, kind: Kind, collection: Collection, options: Mapping[str, Any]) -> Path:
        folder = collection.folder
        if kind == "map" and folder is not None and os.access(folder, os.W_OK):
            return folder / MAP_FILE
        asked = json.dumps([kind, collection.name, options], sort_keys=True)
        return self._scratch / f"{kind}-{hashlib.sha256(asked.encode()).hexdigest()[:16]}.json"

    def _find(self, out: Path) -> dict[str, Any] | None:
        try:
            changed = out.stat().st_mtime_ns
        except FileNotFoundError:
            return None
        if out not in self._read or self._read[out][0] != changed:
            try:
                found = read_json(out)
            except InputError:  # damaged: it is made again
                return None
            if not isinstance(found, dict) or found.get("format") != FORMAT_VERSION:
                return None
            self._read[out] = (changed, found)
        return self._read[out][1]

    def _make(self, kind: Kind, collection: Collection, out: Path, options: Mapping[str, Any]) -> float:
        """Return for how many seconds it has been in the making; a failure is told once."""
        running = self._running.get(out)
        if running is not None and running.process.poll() is not None:
            del self._running[out]
            failure = _failure(running, self._seconds) if running.process.returncode else None
            running.end()
            if failure is not None:
                raise failure
            running = None
        if running is None:
            if sum(one.process.poll() is None for one in self._running.values()) >= MAX_RUNNING_JOBS:
                raise Refusal(429, "rate", "other things are being made: try again when they are done")
            self._tidy()
            running = self._running[out] = self._start(kind, collection, out, options)
        return time.monotonic() - running.since

    def _tidy(self) -> None:
        """Forget what was made long ago, so that no number of different requests fills memory and disk."""
        ended = [out for out, one in self._running.items() if one.process.poll() is not None]
        failed = [out for out in ended if self._running[out].process.returncode]
        for out in {*ended} - {*failed[-MAX_FINISHED_JOBS:]}:
            self._running.pop(out).end()
        kept = sorted(self._scratch.glob("*-*.json"), key=lambda path: path.stat().st_mtime)
        for path in kept[:-MAX_FINISHED_JOBS]:
            path.unlink(missing_ok=True)
            self._read.pop(path, None)

    def _start(self, kind: Kind, collection: Collection, out: Path, options: Mapping[str, Any]) -> _Running:
        name = hashlib.sha256(str(out).encode()).hexdigest()[:16]
        lock, log = self._scratch / f"{name}.lock", self._scratch / f"{name}.{os.getpid()}.log"
        with log.open("wb") as errors:
            arguments = [kind, str(out), str(lock), str(self._seconds), json.dumps(options)]
            process = subprocess.Popen(
                [sys.executable, "-m", "snuh.server.job_runner", *arguments],
                stdin=subprocess.PIPE,  # it ends where nobody holds the other end any more
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env={
                    **os.environ,
                    "OMP_NUM_THREADS": "1",
                    "NUMBA_NUM_THREADS": "1",
                    ADDRESS: str(collection.location),
                },
            )
        return _Running(collection, process, log, time.monotonic())


def _failure(running: _Running, seconds: int) -> Refusal:
    """Return what the process said last."""
    if running.process.returncode == -signal.SIGALRM:
        return unavailable(f"it could not be made within {seconds:,} seconds")
    said = running.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    reason = (
        said[-1].replace(running.collection.name, short_name(running.collection.location))
        if said
        else "it was stopped"
    )
    if running.process.returncode == EXIT_INPUT:
        return invalid(reason)
    return unavailable(f"it could not be made: {reason[:MAX_REASON]}")
