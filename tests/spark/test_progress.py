"""Progress comes from Spark's status tracker, and Ctrl-C cancels the jobs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from snuh.spark.jobs import track_jobs
from tests.spark.cluster import count_running_tasks, wait_for


def test_the_fraction_of_finished_tasks_is_reported(spark: Any, tmp_path: Path) -> None:
    reports: list[float] = []
    seen = tmp_path / "seen"

    def report(fraction: float) -> None:
        reports.append(fraction)
        if 0.0 < fraction < 1.0:
            seen.touch()

    with track_jobs(spark, report):
        run_waiting_tasks(spark, tasks=4, wait_for=seen)
    assert reports[0] == 0.0 and reports[-1] == 1.0
    assert reports == sorted(reports) and any(0.0 < fraction < 1.0 for fraction in reports)


def test_ctrl_c_cancels_the_jobs(spark: Any) -> None:
    from pyspark import InheritableThread

    errors: list[Exception] = []

    def run() -> None:
        try:
            run_sleeping_tasks(spark, tasks=2, seconds=300.0)
        except Exception as error:
            errors.append(error)

    with pytest.raises(KeyboardInterrupt), track_jobs(spark, None):
        thread = InheritableThread(target=run, daemon=True)
        thread.start()
        wait_for(lambda: count_running_tasks(spark))
        raise KeyboardInterrupt
    wait_for(lambda: not thread.is_alive() and not count_running_tasks(spark))
    assert "cancelled" in str(errors[0])


def run_waiting_tasks(spark: Any, *, tasks: int, wait_for: Path) -> None:
    """Run tasks of which only the first one ends before the file exists, or a minute has passed."""
    name = str(wait_for)

    def wait(rows: Iterator[int]) -> Iterator[int]:
        import os
        import time

        numbers, deadline = list(rows), time.monotonic() + 60.0
        while 0 not in numbers and not os.path.exists(name) and time.monotonic() < deadline:
            time.sleep(0.1)
        return iter(numbers)

    spark.sparkContext.parallelize(range(tasks), tasks).mapPartitions(wait).collect()


def run_sleeping_tasks(spark: Any, *, tasks: int, seconds: float) -> None:
    def sleep(rows: Iterator[int]) -> Iterator[int]:
        import time

        time.sleep(seconds)
        return rows

    spark.sparkContext.parallelize(range(tasks), tasks).mapPartitions(sleep).collect()
