"""`snuh spark fit` and `snuh spark encode`, also by spark-submit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import snuh
from tests.cli.running import environment, run
from tests.spark.cluster import SETTINGS, TIMEOUT_SECONDS, read_codes, require_java


def test_the_commands_run(spark: Any, source: Path, codes: dict[str, bytes], tmp_path: Path) -> None:
    ran = run("spark", "fit", source, "--out", tmp_path / "model", "--method", "itq", "--bits", "32")
    assert ran.code == 0 and "itq, 32 bits" in ran.stdout
    ran = run("spark", "encode", source, "--model", tmp_path / "model", "--out", tmp_path / "codes")
    assert ran.code == 0 and "1,200" in ran.stdout
    assert read_codes(tmp_path / "codes").keys() == codes.keys()
    ran = run("spark", "encode", source, "--model", tmp_path / "model", "--out", tmp_path / "codes")
    assert ran.code == 0 and "already written" in ran.stdout


def test_a_property_must_be_one_of_spark(source: Path, tmp_path: Path) -> None:
    ran = run("spark", "fit", source, "--out", tmp_path / "model", "--conf", "memory=1g")
    assert ran.code == 2 and len(ran.complaints) == 1
    assert '--conf expects spark.KEY=VALUE, got "memory=1g"' in ran.complaints[0]
    assert not (tmp_path / "model").exists()


def test_encode_needs_one_target(source: Path) -> None:
    ran = run("spark", "encode", source)
    assert ran.code == 2 and "expected either --out FOLDER or --into COLLECTION" in ran.stderr
    ran = run("spark", "encode", source, "--out", "codes")
    assert ran.code == 2 and "--model and --out go together" in ran.stderr


@pytest.mark.long  # it starts another cluster; the commands themselves are tested above
def test_spark_submit_runs_the_command(
    source: Path, model: snuh.Model, codes: dict[str, bytes], tmp_path: Path
) -> None:
    require_java()
    model.save(tmp_path / "model")
    script = Path(snuh.__file__).parent / "cli" / "spark_submit.py"
    confs = [part for name, value in SETTINGS.items() for part in ("--conf", f"{name}={value}")]
    command = [Path(sys.executable).parent / "spark-submit", "--master", "local[1]", *confs, script]
    done = subprocess.run(
        [*map(str, command), "encode", str(source), "--model", "model", "--out", "codes", "--json"],
        cwd=tmp_path,
        env=environment() | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    assert '"documents": 1200' in done.stdout
    assert read_codes(tmp_path / "codes") == codes
