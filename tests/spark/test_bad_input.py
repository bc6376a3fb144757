"""What goes wrong before Spark starts is one line, and exit code 2."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import numpy as np
import pytest

from snuh.methods.sharing import shard_documents
from tests.cli.running import run
from tests.worlds import planted_topics, write_jsonl


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "toy.jsonl", planted_topics(20))


def test_no_java_is_said(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    refused(source, tmp_path, told="Spark needs Java 17 or newer, and there is none in JAVA_HOME")


def test_no_pyspark_is_said(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    refused(source, tmp_path, told='Spark needs pyspark: pip install "snuh[spark]"')


def test_a_master_that_does_not_answer_is_said(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    java = tmp_path / "bin" / "java"
    java.write_text("#!/bin/sh\nexit 1\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with socket.socket() as bound:  # and so free for nobody else, but not listening
        bound.bind(("127.0.0.1", 0))
        master = f"spark://127.0.0.1:{bound.getsockname()[1]}"
        refused(source, tmp_path, "--master", master, told=f"no Spark master answers at {master}")


def test_a_setting_that_is_none_of_sparks_is_said(source: Path, tmp_path: Path) -> None:
    refused(source, tmp_path, "--conf", "memory=1g", told='--conf expects spark.KEY=VALUE, got "memory=1g"')


def test_where_the_codes_go_must_be_said(source: Path) -> None:
    ran = run("spark", "encode", source)
    assert ran.code == 2 and "expected one of --out FOLDER and --into COLLECTION" in ran.stderr
    ran = run("spark", "encode", source, "--out", "codes")
    assert ran.code == 2 and "--model goes with --out" in ran.stderr


def test_shards_have_equal_sizes_and_cover_all_documents() -> None:
    for docs, size in ((7, 3), (8, 2), (2, 5)):
        shards = [shard_documents(docs, rank=rank, size=size, seed=1) for rank in range(size)]
        assert len({len(shard) for shard in shards}) == 1
        assert set(np.concatenate(shards)) == set(range(docs))


def refused(source: Path, folder: Path, *options: str, told: str) -> None:
    ran = run("spark", "fit", source, "--out", folder / "model", *options)
    assert ran.code == 2
    assert len(ran.complaints) == 1 and told in ran.complaints[0]
    assert not (folder / "model").exists()
