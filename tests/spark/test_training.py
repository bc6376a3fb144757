"""Training by two workers gives what one gives, and a failing worker is reported or replaced."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import patch

import numpy as np
import pytest

import snuh
from snuh.errors import InputError, SnuhError
from snuh.progress import Progress
from snuh.spark import fit, training
from snuh.spark.jobs import LostWorkerError, SparkError
from snuh.spark.training import MAX_RESTARTS, TrainingJob, _restart_if_lost, check_workers
from snuh.training.distributed import shard_documents
from tests.spark.cluster import (
    TIMEOUT_SECONDS,
    BackgroundJob,
    count_running_tasks,
    executor_processes,
    wait_for,
)


@pytest.mark.long
def test_two_workers_match_one_even_if_one_is_killed(
    frame: Any, records: list[dict[str, Any]], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    reports: list[Progress] = []
    victim, obstacle, scored = executor_processes()[0], tmp_path / "obstacle", tmp_path / "scored"
    obstacle.touch()
    settings: dict[str, Any] = {"epochs": 6, "batch_size": 128}
    with patch.object(training, "train_worker", waiting_worker(str(obstacle), str(scored))):
        job = BackgroundJob(
            lambda: fit(frame, bits=16, workers=2, parameters=settings, on_progress=reports.append)
        )
        wait_for(lambda: scored.exists() or job.is_done)
        victim.send_signal(signal.SIGKILL)
        victim.wait(TIMEOUT_SECONDS)
        obstacle.unlink()
        wait_for(lambda: job.is_done)
    assert job.error is None
    trained = job.result
    assert caplog.text.count("training lost a worker and restarts") == 1
    assert [report.epoch.epoch for report in reports if report.epoch is not None] == [1, 2, 3, 4, 5, 6]
    assert reports[-1] == Progress("training", 1.0)
    assert trained.training["workers"] == 2
    assert trained.parameters["batch_size"] == 128
    train = [record["text"] for record in records if record["split"] == "train"]
    alone = snuh.TextHasher(bits=16, parameters=settings).fit(train).model_
    assert alone is not None
    assert precision(trained, records) >= precision(alone, records) - 0.03 >= 0.9


def waiting_worker(obstacle: str, scored: str) -> Any:
    """Let the first worker wait at the end of an epoch while a file exists.

    A function inside a function, which Spark sends to the executors by value.
    """

    def train_worker(partition: Iterable[int], *, job: TrainingJob) -> Iterator[Any]:
        from snuh.spark.training import train_worker
        from snuh.training.validation_score import HeldOutScore

        score = HeldOutScore.__call__

        def wait_and_score(self: HeldOutScore, *args: Any) -> Any:
            Path(scored).touch()
            deadline = time.monotonic() + 60.0
            while os.path.exists(obstacle) and time.monotonic() < deadline:
                time.sleep(0.01)
            return score(self, *args)

        with patch.object(HeldOutScore, "__call__", wait_and_score):
            yield from train_worker(partition, job=job)

    return train_worker


@pytest.mark.long
def test_an_error_in_a_worker_is_raised_at_once(
    spark: Any, frame: Any, caplog: pytest.LogCaptureFixture
) -> None:
    executors = executor_processes()

    def train_worker(partition: Iterable[int], *, job: TrainingJob) -> Iterator[Any]:
        from pyspark import BarrierTaskContext

        from snuh.spark import training

        def fail_in_second_worker(*_: Any) -> None:  # while the first one waits for it
            if BarrierTaskContext.get().partitionId() == 1:
                raise MemoryError("no room")

        with patch.object(training, "_edges_of", fail_in_second_worker):
            yield from training.train_worker(partition, job=job)

    with (
        patch.object(training, "train_worker", train_worker),
        pytest.raises(SparkError, match=r"^the Spark job failed: MemoryError: no room$"),
    ):
        fit(frame, method="vdsh", bits=16, workers=2, parameters={"epochs": 2})
    assert "restarts" not in caplog.text
    wait_for(lambda: not count_running_tasks(spark))
    assert executor_processes() == executors


def test_only_a_lost_worker_causes_a_restart(caplog: pytest.LogCaptureFixture) -> None:
    raised: list[SnuhError] = []

    def fail(error: SnuhError) -> NoReturn:
        raised.append(error)
        raise error

    with pytest.raises(SparkError, match="a bug"):
        _restart_if_lost(lambda: fail(SparkError("a bug")))
    assert len(raised) == 1 and not caplog.messages
    with pytest.raises(LostWorkerError, match="gone"):
        _restart_if_lost(lambda: fail(LostWorkerError("gone")))
    assert len(raised) == 1 + MAX_RESTARTS + 1
    assert caplog.messages == ["training lost a worker and restarts (gone)"] * MAX_RESTARTS


def test_workers_that_cannot_run_together_are_refused(spark: Any) -> None:
    with pytest.raises(InputError, match="3 workers need a core each, and Spark has 2"):
        check_workers(spark, 3)
    with patch.object(type(spark.sparkContext), "getConf", lambda _: {"spark.ssl.enabled": "true"}):
        check_workers(spark, 1)
        with pytest.raises(InputError, match="does not cover what workers send each other"):
            check_workers(spark, 2)


def test_shares_are_equal_and_leave_nobody_out() -> None:
    for docs, size in ((7, 3), (8, 2), (2, 5)):
        shares = [shard_documents(docs, rank=rank, size=size, seed=1) for rank in range(size)]
        assert len({len(share) for share in shares}) == 1
        assert set(np.concatenate(shares)) == set(range(docs))


def precision(model: snuh.Model, records: list[dict[str, Any]]) -> float:
    """Return the fraction of the same topic among the 50 nearest training documents of test documents."""
    splits = {split: [r for r in records if r["split"] == split] for split in ("train", "test")}
    codes = {split: model.encode([r["text"] for r in chosen]) for split, chosen in splits.items()}
    topics = {split: np.array([r["labels"][0] for r in chosen]) for split, chosen in splits.items()}
    distances = np.bitwise_count(codes["test"][:, None] ^ codes["train"][None]).sum(axis=2)
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :50]
    return float((topics["train"][nearest] == topics["test"][:, None]).mean())
