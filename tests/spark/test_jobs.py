"""Spark's exceptions become one-line errors that tell a lost worker from a bug."""

from __future__ import annotations

import pytest

from snuh.errors import InputError, SnuhError
from snuh.spark.jobs import LostWorkerError, SparkError, to_snuh_error

ABORTED = (
    ": org.apache.spark.SparkException: Job aborted due to stage failure: Could not recover from a failed "
)
PYTHON = "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (
            f"{ABORTED}barrier ResultStage.\nExecutorLostFailure (executor 0 exited) Reason: 137",
            LostWorkerError,
        ),
        (f"{PYTHON}snuh.spark.jobs.LostWorkerError: a worker does not respond", LostWorkerError),
        (": org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)", LostWorkerError),
        (": org.apache.spark.SparkException: [SPARK_JOB_CANCELLED] Job 5 cancelled", SparkError),
        (f"{PYTHON}ValueError: a bug of ours", SparkError),
        (f"{PYTHON}snuh.errors.InputError: no such thing", InputError),
    ],
)
def test_a_lost_worker_is_told_from_other_failures(text: str, kind: type[SnuhError]) -> None:
    error = to_snuh_error(text)
    assert type(error) is kind and "\n" not in str(error)


@pytest.mark.parametrize(
    ("raised", "message"),
    [
        ("snuh.errors.InputError: no such thing", "no such thing"),
        ("ValueError: two\nlines", "the Spark job failed: ValueError: two"),
        ("MemoryError", "the Spark job failed: MemoryError"),
    ],
)
def test_the_message_of_a_task_is_kept(raised: str, message: str) -> None:
    assert str(to_snuh_error(PYTHON + raised)) == message
