"""What is made by processes of their own: what they leave behind, and what is answered meanwhile."""

from __future__ import annotations

import fcntl
import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from snuh.collection import Collection
from snuh.server import jobs as module
from snuh.server.errors import Refusal
from snuh.server.job_runner import EXIT_OTHER
from snuh.server.jobs import Answered, Jobs


def answered(jobs: Jobs, collection: Collection, **options: object) -> Answered:
    """Ask until it is made."""
    for _ in range(3_000):
        found = jobs.get("duplicates", collection, options)
        if found.status == 200:
            return found
        time.sleep(0.1)
    raise AssertionError("it was not made in time")


def test_what_is_there_is_answered_where_nothing_can_be_made_now(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = Jobs(tmp_path, seconds=600)
    with Collection(folder) as collection:
        answered(jobs, collection)
        for one in jobs._running.values():
            one.process.wait()
        collection.delete(["d1"])
        monkeypatch.setitem(module.REMADE_AFTER, "duplicates", -1.0)
        monkeypatch.setattr(module, "MAX_RUNNING_JOBS", 0)
        found = jobs.get("duplicates", collection, {})
        assert found.status == 200 and b'"current":false' in found.body
        with pytest.raises(Refusal, match="other things are being made"):
            jobs.get("duplicates", collection, {"threshold": 0.5})
    jobs.close()


@contextmanager
def held_up(jobs: Jobs, collection: Collection, scratch: Path) -> Iterator[None]:
    """Keep what looks for duplicates from starting, as another process that does so already would."""
    out = jobs._place("duplicates", collection, {})
    name = hashlib.sha256(str(out).encode()).hexdigest()[:16]
    with (scratch / f"{name}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def test_what_takes_too_long_is_stopped(folder: Path, tmp_path: Path) -> None:
    jobs = Jobs(tmp_path, seconds=1)
    with Collection(folder) as collection, held_up(jobs, collection, tmp_path):
        with pytest.raises(Refusal, match="it could not be made within 1 seconds") as refused:
            answered(jobs, collection)
        assert refused.value.status == 503
    jobs.close()


def test_what_is_being_made_ends_with_the_server(folder: Path, tmp_path: Path) -> None:
    jobs = Jobs(tmp_path, seconds=600)
    with Collection(folder) as collection, held_up(jobs, collection, tmp_path):
        jobs.get("duplicates", collection)
        (running,) = jobs._running.values()
        assert running.process.stdin is not None
        running.process.stdin.close()  # as it is when the server is gone, however it went
        assert running.process.wait(timeout=120) == EXIT_OTHER
    jobs.close()


def test_failures_leave_nothing_behind_and_name_no_folder(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_FINISHED_JOBS", 1)
    jobs = Jobs(tmp_path, seconds=600)
    with Collection(folder) as collection:
        for name in ("one", "two"):
            jobs.get("duplicates", collection, {"group_by": name})
            while any(one.process.poll() is None for one in jobs._running.values()):
                time.sleep(0.05)
        store = folder / "store.sqlite"
        store.rename(folder / "away")
        jobs.get("duplicates", collection, {})
        assert len(list(tmp_path.glob("*.log"))) == len(jobs._running) == 2  # the last failure, and this one
        with pytest.raises(Refusal, match='no document has a field "two"'):
            jobs.get("duplicates", collection, {"group_by": "two"})
        with pytest.raises(Refusal, match="it could not be made: c: its store is missing") as refused:
            answered(jobs, collection)
        (folder / "away").rename(store)
        assert refused.value.status == 503 and str(folder.parent) not in str(refused.value)
        assert not list(tmp_path.iterdir())
    jobs.close()
