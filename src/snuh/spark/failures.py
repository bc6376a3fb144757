"""What went wrong on Spark, in one line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import snuh
from snuh import errors
from snuh.errors import InputError, SnuhError

OURS = re.compile(r"(?:^|\s)snuh\.[\w.]+\.(\w+Error): (.+)$", re.MULTILINE)
REASON = re.compile(r"^:?\s*([\w.$]+(?:Error|Exception): .+)$", re.MULTILINE)
JAVA = ("org.", "java.", "py4j.", "pyspark.")
GONE = re.compile(r"ExecutorLostFailure|ExecutorDeadException|Python worker exited unexpectedly")
# TorchDistributor says so where the process of a worker ended without a result, for whatever reason.
SILENT = "TorchDistributor failed during training"
SAME_PYTHON = "executors need the same Python with the same snuh: install it there and set PYSPARK_PYTHON"


class SparkError(SnuhError):
    """A Spark job that failed."""


class LostWorkerError(SparkError):
    """A job that a process or a machine left before its end; the next try may go well."""


@contextmanager
def reported() -> Iterator[None]:
    """Turn what Spark raises into an error of one line; what a task of ours raised keeps its sentence."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise _translated(str(error)) from error


def _translated(text: str) -> SnuhError:
    ours = OURS.findall(text)
    if ours:
        return named_error(*ours[-1])
    if SILENT in text:
        return LostWorkerError(
            "a worker ended without a word: killed, for its memory perhaps, or its Python lacks torch; "
            "look at the executors' logs"
        )
    if "No module named" in text or "PYTHON_VERSION_MISMATCH" in text:
        missing = re.search(r"No module named '([\w.]+)'", text)
        what = f"has no {missing[1]}" if missing else "is of another version"
        return SparkError(f"the Python of the executors {what}: {SAME_PYTHON}")
    if "MALFORMED_RECORD" in text or "BadRecordException" in text:
        return InputError("the source holds a line that is not valid JSON: expected one object a line")
    reasons = REASON.findall(text)
    by_task = [reason for reason in reasons if not reason.startswith(JAVA)]
    # Python puts the cause last, Java first.
    reason = by_task[-1] if by_task else next(iter(reasons or text.strip().splitlines()), "no reason given")
    kind = LostWorkerError if GONE.search(text) else SparkError
    return kind(f"the Spark job failed: {reason.strip()}")


def named_error(name: str, message: str) -> SnuhError:
    """Return the error of snuh that has a name, or else a SparkError."""
    kind = getattr(errors, name, SparkError)
    is_known = isinstance(kind, type) and issubclass(kind, SnuhError)
    return kind(message) if is_known else SparkError(message)


def check_version(driver: str) -> None:
    """Raise SparkError, on an executor, where its snuh is another one than the driver's."""
    if snuh.__version__ != driver:
        raise SparkError(f"the driver has snuh {driver}, an executor {snuh.__version__}: {SAME_PYTHON}")
