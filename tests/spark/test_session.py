"""A session that cannot start is reported in one line, with exit code 2."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from tests.cli.running import run


@pytest.fixture(autouse=True)
def no_active_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the session of other tests, which the commands would use."""
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", classmethod(lambda _: None))


def test_missing_java_is_reported(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    expect_error(source, tmp_path, message="Spark needs Java 17 or newer, and there is none in JAVA_HOME")


def test_missing_pyspark_is_reported(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    expect_error(source, tmp_path, message='Spark needs pyspark: pip install "snuhash[spark]"')


def test_unreachable_master_is_reported(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    java = tmp_path / "bin" / "java"
    java.write_text("#!/bin/sh\nexit 1\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with socket.socket() as bound:  # reserves a port without listening on it
        bound.bind(("127.0.0.1", 0))
        master = f"spark://127.0.0.1:{bound.getsockname()[1]}"
        expect_error(source, tmp_path, "--master", master, message=f"no Spark master responds at {master}")


def expect_error(source: Path, folder: Path, *options: str, message: str) -> None:
    ran = run("spark", "fit", source, "--out", folder / "model", *options)
    assert ran.code == 2
    assert len(ran.complaints) == 1 and message in ran.complaints[0]
    assert not (folder / "model").exists()
