"""How far the jobs of a block have come, asked of Spark every half second."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from snuh.spark.failures import reported

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

SECONDS_BETWEEN_LOOKS = 0.5
Report = Callable[[float], None]


@contextmanager
def watched(spark: SparkSession, report: Report | None) -> Iterator[None]:
    """Report the share of tasks done while the block runs its jobs; Ctrl-C ends them."""
    context = spark.sparkContext
    group = f"snuh-{secrets.token_hex(4)}"
    context.setJobGroup(group, "snuh", interruptOnCancel=True)
    over = threading.Event()
    thread = threading.Thread(target=_look, args=(context, group, report, over), daemon=True)
    if report is not None:
        report(0.0)
        thread.start()
    try:
        with reported():
            yield
    except KeyboardInterrupt:
        context.cancelJobGroup(group)
        raise
    finally:
        over.set()
        if report is not None:
            thread.join()
    if report is not None:
        report(1.0)


def _look(context: SparkContext, group: str, report: Report, over: threading.Event) -> None:
    tracker, limit = context.statusTracker(), 0.0
    while not over.wait(SECONDS_BETWEEN_LOOKS):
        jobs = [job for number in tracker.getJobIdsForGroup(group) if (job := tracker.getJobInfo(number))]
        numbers = {stage for job in jobs for stage in job.stageIds}
        stages = [stage for number in numbers if (stage := tracker.getStageInfo(number))]
        tasks = sum(stage.numTasks for stage in stages)
        if tasks:
            # A later stage adds tasks: what was shown stays. The end is told when the block is over.
            limit = max(limit, min(0.99, sum(stage.numCompletedTasks for stage in stages) / tasks))
            report(limit)
