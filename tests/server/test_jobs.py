"""Jobs: their results, time limits, failures and leftovers."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from snuh.collection import Collection
from snuh.server import jobs as module
from snuh.server.job_runner import EXIT_OTHER
from snuh.server.jobs import Jobs, JobStatus
from snuh.server.requests import ApiError


def wait_for_duplicates(jobs: Jobs, collection: Collection, **options: object) -> JobStatus:
    """Wait until the job is done."""
    for _ in range(3_000):
        job = jobs.get("duplicates", collection, options)
        if job.status == 200:
            return job
        time.sleep(0.1)
    raise AssertionError("the job did not finish in time")


def test_a_stale_result_is_returned_while_no_job_can_start(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = Jobs(tmp_path, seconds=600)
    with Collection(folder) as collection:
        wait_for_duplicates(jobs, collection)
        while jobs.running:
            time.sleep(0.05)
        collection.delete(["d1"])
        monkeypatch.setitem(module.MAX_STALE_SECONDS, "duplicates", -1.0)
        monkeypatch.setattr(module, "MAX_RUNNING_JOBS", 0)
        stale = jobs.get("duplicates", collection, {})
        assert stale.status == 200 and b'"current":false' in stale.body
        with pytest.raises(ApiError, match="other jobs are running"):
            jobs.get("duplicates", collection, {"threshold": 0.5})
    jobs.close()


@contextmanager
def blocked(jobs: Jobs, collection: Collection) -> Iterator[None]:
    """Block the search for duplicates, as another process with the same job would."""
    out = jobs.result_path("duplicates", collection, {})
    with jobs.lock_path(out).open("w") as lock_file:
        fcntl.flock(lock_file, fcntl.LOCK_EX)
        yield


def test_a_job_that_takes_too_long_is_killed(folder: Path, tmp_path: Path) -> None:
    jobs = Jobs(tmp_path, seconds=1)
    with Collection(folder) as collection, blocked(jobs, collection):
        with pytest.raises(ApiError, match="the job exceeded its limit of 1 seconds") as error:
            wait_for_duplicates(jobs, collection)
        assert error.value.status_code == 503
    jobs.close()


def test_a_job_exits_with_the_server(folder: Path, tmp_path: Path) -> None:
    jobs = Jobs(tmp_path, seconds=600)
    with Collection(folder) as collection, blocked(jobs, collection):
        jobs.get("duplicates", collection)
        (job,) = jobs._jobs.values()
        assert job.process.stdin is not None
        job.process.stdin.close()  # as when the server exits
        assert job.process.wait(timeout=120) == EXIT_OTHER
    jobs.close()


def test_failed_jobs_leave_no_files_and_reveal_no_folder(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_FINISHED_JOBS", 1)
    jobs = Jobs(tmp_path, seconds=600)
    with Collection(folder) as collection:
        for name in ("one", "two"):
            jobs.get("duplicates", collection, {"group_by": name})
            while jobs.running:
                time.sleep(0.05)
        models = folder / "models"
        models.rename(folder / "away")
        jobs.get("duplicates", collection, {})
        assert len(list(tmp_path.glob("*.log"))) == 2  # the last failure, and this one
        with pytest.raises(ApiError, match='no document has a field "two"'):
            jobs.get("duplicates", collection, {"group_by": "two"})
        with pytest.raises(ApiError, match="the job failed: c has lost its model") as error:
            wait_for_duplicates(jobs, collection)
        (folder / "away").rename(models)
        assert error.value.status_code == 503 and str(folder.parent) not in str(error.value)
        assert not list(tmp_path.iterdir())
    jobs.close()
