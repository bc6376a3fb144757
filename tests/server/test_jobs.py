"""What is made by processes of their own: what they leave behind, and what is answered meanwhile."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from snuh.collection import Collection
from snuh.server import jobs as module
from snuh.server.jobs import Answered, Jobs
from snuh.server.refusals import Refusal


def answered(jobs: Jobs, collection: Collection, **options: object) -> Answered:
    """Ask until it is made."""
    for _ in range(600):
        found = jobs.get("duplicates", collection, options)
        if found.status == 200:
            return found
        time.sleep(0.1)
    raise AssertionError("it was not made in time")


def test_what_is_there_is_answered_where_nothing_can_be_made_now(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = Jobs(tmp_path)
    with Collection(folder) as collection:
        answered(jobs, collection)
        for one in jobs._running.values():
            one.process.wait()
        collection.delete(["d1"])
        monkeypatch.setitem(module.REMADE_AFTER, "duplicates", -1.0)
        monkeypatch.setattr(module, "MOST_RUNNING", 0)
        found = jobs.get("duplicates", collection, {})
        assert found.status == 200 and b'"current":false' in found.body
        with pytest.raises(Refusal, match="other things are being made"):
            jobs.get("duplicates", collection, {"threshold": 0.5})
    jobs.close()


def test_failures_leave_nothing_behind_and_name_no_folder(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_KEPT", 1)
    jobs = Jobs(tmp_path)
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
