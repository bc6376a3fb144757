"""Progress of Spark jobs, polled from Spark's status tracker."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from snuh.spark.errors import translate_errors

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

POLL_SECONDS = 0.5
Report = Callable[[float], None]


@contextmanager
def track_jobs(spark: SparkSession, report: Report | None) -> Iterator[None]:
    """Report the fraction of tasks done by the jobs of the block.

    Ctrl-C cancels the jobs. Spark's exceptions are translated into one-line errors.
    """
    context = spark.sparkContext
    group = f"snuh-{secrets.token_hex(4)}"
    context.setJobGroup(group, "snuh", interruptOnCancel=True)
    done = threading.Event()
    thread = threading.Thread(target=_poll, args=(context, group, report, done), daemon=True)
    if report is not None:
        report(0.0)
        thread.start()
    try:
        with translate_errors():
            yield
    except KeyboardInterrupt:
        context.cancelJobGroup(group)
        raise
    finally:
        done.set()
        if report is not None:
            thread.join()
    if report is not None:
        report(1.0)


def _poll(context: SparkContext, group: str, report: Report, done: threading.Event) -> None:
    tracker, fraction = context.statusTracker(), 0.0
    while not done.wait(POLL_SECONDS):
        jobs = [job for job_id in tracker.getJobIdsForGroup(group) if (job := tracker.getJobInfo(job_id))]
        stage_ids = {stage_id for job in jobs for stage_id in job.stageIds}
        stages = [stage for stage_id in stage_ids if (stage := tracker.getStageInfo(stage_id))]
        if tasks := sum(stage.numTasks for stage in stages):
            # A later stage adds tasks, but progress never goes back; 1.0 is reported after the block.
            fraction = max(fraction, min(0.99, sum(stage.numCompletedTasks for stage in stages) / tasks))
            report(fraction)
