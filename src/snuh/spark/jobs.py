"""Running Spark jobs: progress from the status tracker, and failures as one-line errors.

Spark carries the traceback of a failed task to the driver as text. An error of snuh raised on an executor is
raised again on the driver, with the same type and message.
"""

from __future__ import annotations

import re
import secrets
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import snuh
from snuh.errors import InputError, SnuhError

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

SNUH_ERROR = re.compile(r"(?:^|\s)(snuh\.[\w.]+)\.(\w+Error): (.+)$", re.MULTILINE)
ANY_ERROR = re.compile(r"^:?\s*([\w.$]+(?:Error|Exception)(?:: .+)?)$", re.MULTILINE)
JVM_PACKAGES = ("org.", "java.", "py4j.", "pyspark.")
LOST_WORKER = re.compile(
    r"(?:ExecutorLostFailure|ExecutorDeadException|Python worker exited unexpectedly).*$", re.MULTILINE
)
SAME_PYTHON = "executors need the same Python with the same snuh: install it there and set PYSPARK_PYTHON"


class SparkError(SnuhError):
    """A Spark job that failed."""


class LostWorkerError(SparkError):
    """A job that lost a process or a machine; it may succeed when run again."""


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raise the exceptions of PySpark and Py4J as a `SnuhError` with a one-line message."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise to_snuh_error(str(error)) from error


def to_snuh_error(text: str) -> SnuhError:
    """Translate the text of a Spark exception, which includes the traceback of the failed task."""
    if raised := SNUH_ERROR.findall(text):
        module, name, message = raised[-1]
        kind = getattr(sys.modules.get(module), name, SparkError)
        return kind(message) if issubclass(kind, SnuhError) else SparkError(message)
    if "No module named" in text or "PYTHON_VERSION_MISMATCH" in text:
        missing = re.search(r"No module named '([\w.]+)'", text)
        problem = f"has no {missing[1]}" if missing else "has a different version"
        return SparkError(f"the Python of the executors {problem}: {SAME_PYTHON}")
    if "MALFORMED_RECORD" in text or "BadRecordException" in text:
        return InputError("the source contains a line that is not valid JSON: expected one object per line")
    if lost := LOST_WORKER.search(text):
        return LostWorkerError(f"the Spark job failed: {lost[0]}")
    return SparkError(f"the Spark job failed: {_root_cause(text)}")


def _root_cause(text: str) -> str:
    """Return the line that names the root cause: the last one of Python, or else the first one of Java."""
    errors: list[str] = [line.strip() for line in ANY_ERROR.findall(text)]
    python_errors = [line for line in errors if not line.startswith(JVM_PACKAGES)]
    if python_errors:
        return python_errors[-1]
    return next(iter(errors or text.strip().splitlines()), "no reason given")


def check_version(driver: str) -> None:
    """Raise SparkError, on an executor, if its version of snuh is not the driver's."""
    if snuh.__version__ != driver:
        raise SparkError(f"the driver has snuh {driver}, an executor {snuh.__version__}: {SAME_PYTHON}")


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
