"""A local cluster for the tests: Java, executors in processes of their own, jobs in the background."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

MASTER = "local-cluster[2,1,1024]"
# The jobs are short: full optimization by the JVM would take longer than it saves.
SETTINGS = {
    **{f"spark.{role}.extraJavaOptions": "-XX:TieredStopAtLevel=1" for role in ("driver", "executor")},
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "2",
}
JAVA_PACKAGE = "openjdk-17-jre-headless"
TIMEOUT_SECONDS = 600.0  # machines that run tests are busy


def require_java() -> None:
    """Install Java if it is missing and we may; otherwise skip the test, or fail it under CI=true."""
    if not _has_java() and os.geteuid() == 0 and shutil.which("apt-get"):
        _install_java()
    if not _has_java():
        reason = f"these tests need Java 17: as root they install Debian's {JAVA_PACKAGE}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)


def _has_java() -> bool:
    return bool(os.environ.get("JAVA_HOME") or shutil.which("java"))


def _install_java() -> None:
    env = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "-y", "--no-install-recommends", JAVA_PACKAGE]):
        subprocess.run(["apt-get", "-qq", *command], env=env, check=False, capture_output=True, timeout=600)


class BackgroundJob:
    """Runs a function in a thread and keeps what it returned or raised."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.result: Any = None
        self.error: BaseException | None = None
        self._function = function
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.result = self._function()
        except BaseException as error:
            self.error = error

    @property
    def is_done(self) -> bool:
        return not self._thread.is_alive()


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "timed out"
        time.sleep(0.01)


def executor_processes() -> list[psutil.Process]:
    executors = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # it may exit meanwhile
            if "CoarseGrainedExecutorBackend" in " ".join(process.cmdline()):
                executors.append(process)
    return executors


def count_running_tasks(spark: Any) -> int:
    executors = spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()
    return sum(executor.numRunningTasks() for executor in executors)


def read_codes(folder: Path) -> dict[str, bytes]:
    return codes_by_id(pq.read_table(folder))


def codes_by_id(table: pa.Table) -> dict[str, bytes]:
    ids, codes = table["id"].to_pylist(), table["code"].to_pylist()
    assert len(set(ids)) == len(ids)
    return dict(zip(ids, codes, strict=True))
