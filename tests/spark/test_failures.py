"""Who is to blame for a job that failed: that decides whether it is worth another try."""

from __future__ import annotations

from typing import NoReturn

import pytest

from snuh.errors import InputError, ModelError, SnuhError
from snuh.spark.failures import LostWorkerError, SparkError, _translated
from snuh.spark.farewell import Failure
from snuh.spark.training import MAX_LOSSES, _run_again

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
        (f"{PYTHON}RuntimeError: TorchDistributor failed during training.View stdout logs", LostWorkerError),
        (": org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)", LostWorkerError),
        (": org.apache.spark.SparkException: [SPARK_JOB_CANCELLED] Job 5 cancelled", SparkError),
        (f"{PYTHON}ValueError: a bug of ours", SparkError),
        (f"{PYTHON}snuh.errors.InputError: no such thing", InputError),
    ],
)
def test_a_lost_worker_is_told_from_other_failures(text: str, kind: type[SnuhError]) -> None:
    error = _translated(text)
    assert type(error) is kind and "\n" not in str(error)


def test_only_a_lost_worker_is_worth_another_try(caplog: pytest.LogCaptureFixture) -> None:
    tries: list[SnuhError] = []

    def fails(error: SnuhError) -> NoReturn:
        tries.append(error)
        raise error

    with pytest.raises(SparkError, match="a bug"):
        _run_again(lambda: fails(SparkError("a bug")))
    assert len(tries) == 1 and not caplog.messages
    with pytest.raises(LostWorkerError, match="gone"):
        _run_again(lambda: fails(LostWorkerError("gone")))
    assert len(tries) == 1 + MAX_LOSSES + 1
    assert caplog.messages == ["training lost a worker and starts again (gone)"] * MAX_LOSSES


def test_what_a_worker_raised_keeps_its_kind_and_its_sentence() -> None:
    ours = Failure.of(ModelError("no such model"), 1).as_error()
    assert type(ours) is ModelError and str(ours) == "no such model"
    for error, told in (
        (ValueError("two\nlines"), "training failed in worker 2: ValueError: two lines"),
        (MemoryError(), "training failed in worker 2: MemoryError"),
    ):
        made = Failure.of(error, 1).as_error()
        assert type(made) is SparkError and str(made) == told
    assert type(Failure("", "gone", is_loss=True).as_error()) is LostWorkerError
