"""A Spark session: what it needs is looked at first, and its own log goes to a file."""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from snuh.errors import InputError, MissingExtraError, SnuhError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_MASTER = "local[*]"
LOOPBACK = "127.0.0.1"
SECONDS_TO_CONNECT = 5.0


@contextmanager
def open_session(
    master: str | None = None, *, settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Give a session for the length of the block; one that is there already is used, and left running.

    Args:
        master: such as "local[2]" or "spark://host:7077"; None: what spark-submit says, or this machine.
        settings: Spark's own, such as {"spark.executor.memory": "8g"}.

    Raises:
        InputError: Where the master cannot be reached, or a session of another master is running.
        SnuhError: Without Java, or where Spark does not start.
    """
    spark_session = _import_spark()
    running = spark_session.getActiveSession()
    if running is not None:
        if master not in (None, running.sparkContext.master):
            raise InputError(
                f"a Spark session with the master {running.sparkContext.master} is running, got {master}: "
                "stop it first, or leave the master out"
            )
        yield running
        return
    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ  # spark-submit has started Java, and knows the master
    if not is_submitted:
        _check_java()
        master = master or DEFAULT_MASTER
    _check_master(master or "")
    # Executors start what this says, and otherwise any "python3".
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = spark_session.builder.appName("snuh")
    for name, value in {**_usual(master), **(settings or {})}.items():
        builder = builder.config(name, value)
    if master is not None:
        builder = builder.master(master)
    session = builder.getOrCreate() if is_submitted else _start(builder)
    try:
        yield session
    finally:
        session.stop()


def _import_spark() -> type[SparkSession]:
    try:
        import pandas  # noqa: F401  Spark's Arrow functions ask for it
        from pyspark.sql import SparkSession
    except ModuleNotFoundError as error:
        name = str(error.name).partition(".")[0]
        raise MissingExtraError(f'Spark needs {name}: pip install "snuh[spark]"') from None
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
    return SparkSession


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(str(Path(home) / "bin" / "java")) if home else shutil.which("java")
    if found is None:
        where = f"JAVA_HOME ({home})" if home else "the PATH"
        raise SnuhError(
            f"Spark needs Java 17 or newer, and there is none in {where}: install it, such as with "
            '"apt install openjdk-17-jre-headless", or set JAVA_HOME'
        )


def _check_master(master: str) -> None:
    """Ask a standalone master for an answer now: Spark itself would try for minutes."""
    if not master.startswith("spark://"):
        return
    for address in master.removeprefix("spark://").split(","):
        parts = urlsplit(f"//{address}")
        with suppress(OSError, ValueError):
            place = (parts.hostname or "", parts.port or 7077)
            socket.create_connection(place, timeout=SECONDS_TO_CONNECT).close()
            return
    raise InputError(f"no Spark master answers at {master}: start it, or check its address")


def _usual(master: str | None) -> dict[str, str]:
    usual = {
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.driver.maxResultSize": "0",  # the rows to train on come to the driver
        "spark.executorEnv.NUMBA_NUM_THREADS": "1",  # Spark gives a core to each task
        "spark.executorEnv.OMP_NUM_THREADS": "1",
    }
    if master is None or not master.startswith("local"):
        return usual
    os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)
    on_this_machine = {
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "8",  # of 200, most would be empty
    }
    return usual | on_this_machine


def _start(builder: SparkSession.Builder) -> SparkSession:
    """Start Java with a file for its stderr, and show the end of that where it does not start."""
    from pyspark.errors import PySparkException

    log = Path(tempfile.mkdtemp(prefix="snuh-spark-")) / "spark.log"
    try:
        with _stderr_to(log):
            session = builder.getOrCreate()
    except (PySparkException, OSError, RuntimeError) as error:
        lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
        reason = lines[-1] if lines else str(error).partition("\n")[0]
        raise SnuhError(f"Spark did not start: {reason} (its log: {log})") from error
    except Exception as error:  # py4j's own, which says what Java threw
        raise SnuhError(f"Spark did not start: {_first_line(error)} (its log: {log})") from error
    session.sparkContext.setLogLevel("ERROR")
    atexit.register(shutil.rmtree, log.parent, ignore_errors=True)
    return session


def _first_line(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if ": " in line]
    return lines[-1 if len(lines) < 2 else 1].strip() if lines else type(error).__name__


@contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """Let processes started in the block inherit another stderr."""
    sys.stderr.flush()
    kept = os.dup(2)
    with log.open("wb") as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
