"""Processes that make what takes long, and the files in which it is kept."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from snuh.collection import Collection
from snuh.errors import InputError
from snuh.server.making import EXIT_INPUT, FORMAT_VERSION
from snuh.server.refusals import Refusal, invalid, unavailable
from snuh.server.writing import json_bytes
from snuh.storage import read_json

Kind = Literal["map", "duplicates"]
MAP_FILE = "map.json"
REMADE_AFTER: dict[Kind, float] = {"map": 300.0, "duplicates": 5.0}  # seconds, where documents come and go
MOST_RUNNING, MOST_KEPT, LONGEST_REASON = 2, 50, 500


@dataclass(frozen=True, slots=True)
class Answered:
    """What there is now: the thing itself, or that it is being made."""

    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class _Running:
    folder: Path
    process: subprocess.Popen[bytes]
    log: Path
    since: float


class Jobs:
    """Starts a process where something is missing or old."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._turn = threading.Lock()  # collections have threads of their own
        self._running: dict[Path, _Running] = {}
        self._read: dict[Path, tuple[int, dict[str, Any]]] = {}  # what was read, and the file's time

    def get(self, kind: Kind, collection: Collection, options: Mapping[str, Any] | None = None) -> Answered:
        """Return what was made of a collection; where it was not, start to make it."""
        out, version = self._place(kind, collection, options or {}), collection.version()
        with self._turn:
            found = self._find(out)
            if found is None:
                seconds = self._make(kind, collection.folder, out, options or {})
                return Answered(202, json_bytes({"state": "making", "seconds": round(seconds, 1)}))
            is_current = found.get("version") == version
            if not is_current and time.time() - self._read[out][0] / 1e9 > REMADE_AFTER[kind]:
                with suppress(Refusal):  # what is there is answered meanwhile
                    self._make(kind, collection.folder, out, options or {})
        told = {name: value for name, value in found.items() if name not in ("format", "version")}
        return Answered(200, json_bytes({"state": "ready", "current": is_current, **told}))

    def close(self) -> None:
        """Stop what is being made."""
        for running in self._running.values():
            running.process.kill()
            running.process.wait()

    def _place(self, kind: Kind, collection: Collection, options: Mapping[str, Any]) -> Path:
        if kind == "map" and os.access(collection.folder, os.W_OK):
            return collection.folder / MAP_FILE
        asked = json.dumps([kind, str(collection.folder), options], sort_keys=True)
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

    def _make(self, kind: Kind, folder: Path, out: Path, options: Mapping[str, Any]) -> float:
        """Return for how many seconds it has been in the making; a failure is told once."""
        running = self._running.get(out)
        if running is not None and running.process.poll() is not None:
            del self._running[out]
            failure = _failure(running) if running.process.returncode else None
            running.log.unlink(missing_ok=True)
            if failure is not None:
                raise failure
            running = None
        if running is None:
            if sum(one.process.poll() is None for one in self._running.values()) >= MOST_RUNNING:
                raise Refusal(429, "rate", "other things are being made: try again when they are done")
            self._tidy()
            running = self._running[out] = self._start(kind, folder, out, options)
        return time.monotonic() - running.since

    def _tidy(self) -> None:
        """Forget what was made long ago, so that no number of different requests fills memory and disk."""
        ended = [out for out, one in self._running.items() if one.process.poll() is not None]
        failed = [out for out in ended if self._running[out].process.returncode]
        for out in {*ended} - {*failed[-MOST_KEPT:]}:
            self._running.pop(out).log.unlink(missing_ok=True)
        kept = sorted(self._scratch.glob("*-*.json"), key=lambda path: path.stat().st_mtime)
        for path in kept[:-MOST_KEPT]:
            path.unlink(missing_ok=True)
            self._read.pop(path, None)

    def _start(self, kind: Kind, folder: Path, out: Path, options: Mapping[str, Any]) -> _Running:
        name = hashlib.sha256(str(out).encode()).hexdigest()[:16]
        lock, log = self._scratch / f"{name}.lock", self._scratch / f"{name}.{os.getpid()}.log"
        with log.open("wb") as errors:
            arguments = [kind, str(folder), str(out), str(lock), json.dumps(options)]
            process = subprocess.Popen(
                [sys.executable, "-m", "snuh.server.making", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env={**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"},
            )
        return _Running(folder, process, log, time.monotonic())


def _failure(running: _Running) -> Refusal:
    """Return what the process said last."""
    said = running.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    reason = said[-1].replace(str(running.folder), running.folder.name) if said else "it was stopped"
    if running.process.returncode == EXIT_INPUT:
        return invalid(reason)
    return unavailable(f"it could not be made: {reason[:LONGEST_REASON]}")
