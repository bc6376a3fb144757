"""Open a Spark session: requirements are checked first, and Spark's own log goes to a file."""

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
CONNECT_TIMEOUT_SECONDS = 5.0


@contextmanager
def open_session(
    master: str | None = None, *, settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Open a session and stop it after the block; a session that is already active is used and left running.

    Args:
        master: such as "local[2]" or "spark://host:7077"; None: the one of spark-submit, or this machine.
        settings: Spark properties, such as {"spark.executor.memory": "8g"}.

    Raises:
        InputError: If the master cannot be reached, or a session with another master is active.
        SnuhError: If there is no Java, or Spark does not start.
    """
    spark_session = _import_spark()
    running = spark_session.getActiveSession()
    if running is not None:
        if master not in (None, running.sparkContext.master):
            raise InputError(
                f"a Spark session with the master {running.sparkContext.master} is active, got {master}: "
                "stop it first, or omit the master"
            )
        yield running
        return
    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ  # spark-submit has started Java and set the master
    if not is_submitted:
        _check_java()
        master = master or DEFAULT_MASTER
    _check_master(master or "")
    # Without it, executors start any "python3" on the PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = spark_session.builder.appName("snuh")
    for name, value in {**_default_settings(master), **(settings or {})}.items():
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
        import pandas  # noqa: F401  required by Spark's Arrow functions
        from pyspark.sql import SparkSession
    except ModuleNotFoundError as error:
        name = str(error.name).partition(".")[0]
        raise MissingExtraError(f'Spark needs {name}: pip install "snuhash[spark]"') from None
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
    return SparkSession


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(str(Path(home) / "bin" / "java")) if home else shutil.which("java")
    if java is None:
        where = f"JAVA_HOME ({home})" if home else "the PATH"
        raise SnuhError(
            f"Spark needs Java 17 or newer, and there is none in {where}: install it, for example with "
            '"apt install openjdk-17-jre-headless", or set JAVA_HOME'
        )


def _check_master(master: str) -> None:
    """Raise InputError if a standalone master does not accept connections: Spark would retry for minutes."""
    if not master.startswith("spark://"):
        return
    for address in master.removeprefix("spark://").split(","):
        parts = urlsplit(f"//{address}")
        with suppress(OSError, ValueError):
            host, port = parts.hostname or "", parts.port or 7077
            socket.create_connection((host, port), timeout=CONNECT_TIMEOUT_SECONDS).close()
            return
    raise InputError(f"no Spark master responds at {master}: start it, or check its address")


def _default_settings(master: str | None) -> dict[str, str]:
    settings = {
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.driver.maxResultSize": "0",  # no limit: the driver gathers the rows to train on
        "spark.executorEnv.NUMBA_NUM_THREADS": "1",  # Spark runs one task per core
        "spark.executorEnv.OMP_NUM_THREADS": "1",
    }
    if master is None or not master.startswith("local"):
        return settings
    os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)
    local_settings = {
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "8",  # of the default 200, most would be empty
    }
    return settings | local_settings


def _start(builder: SparkSession.Builder) -> SparkSession:
    """Start Java with its stderr in a file, and quote the end of that file if it does not start."""
    from pyspark.errors import PySparkException

    log = Path(tempfile.mkdtemp(prefix="snuh-spark-")) / "spark.log"
    try:
        with _stderr_to(log):
            session = builder.getOrCreate()
    except (PySparkException, OSError, RuntimeError) as error:
        lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
        reason = lines[-1] if lines else str(error).partition("\n")[0]
        raise SnuhError(f"Spark did not start: {reason} (log: {log})") from error
    except Exception as error:  # Py4J's, with the exception of Java in its text
        raise SnuhError(f"Spark did not start: {_first_line(error)} (log: {log})") from error
    session.sparkContext.setLogLevel("ERROR")
    atexit.register(shutil.rmtree, log.parent, ignore_errors=True)
    return session


def _first_line(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if ": " in line]
    return lines[-1 if len(lines) < 2 else 1].strip() if lines else type(error).__name__


@contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """Redirect the stderr of processes that are started in the block."""
    sys.stderr.flush()
    saved = os.dup(2)
    with log.open("wb") as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(saved, 2)
            os.close(saved)
