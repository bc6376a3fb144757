"""Codes equal those of one machine, and a folder of codes is complete or absent, even if processes die."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

import snuh
from snuh.errors import InputError, SnuhError
from snuh.spark import encode, encoding, write_codes
from tests.spark.cluster import (
    BackgroundJob,
    codes_by_id,
    count_running_tasks,
    executor_processes,
    read_codes,
    wait_for,
)

MANY_PARTS = 40  # small ones, so that the job can be stopped halfway
JOB = {"format": encoding.FORMAT, "documents": 2, "checksum": "x"}


def test_codes_equal_those_of_one_machine_and_are_written_once(
    frame: Any, records: list[dict[str, Any]], model: snuh.Model, codes: dict[str, bytes], tmp_path: Path
) -> None:
    out = tmp_path / "codes.parquet"
    assert not write_codes(frame, model, out, parts=3).already_written
    assert read_codes(out) == codes
    assert codes_by_id(encode(frame, model).toArrow()) == codes
    before = {path: path.stat().st_mtime_ns for path in out.iterdir()}
    assert write_codes(frame, model, out).already_written
    assert {path: path.stat().st_mtime_ns for path in out.iterdir()} == before
    with pytest.raises(InputError, match="holds codes of other documents: choose another folder"):
        write_codes(frame.limit(10), model, out)
    other = snuh.TextHasher("lsh", 32).fit([record["text"] for record in records]).model_
    with pytest.raises(InputError, match="holds codes of another model: choose another folder"):
        write_codes(frame, other, out)
    assert {path: path.stat().st_mtime_ns for path in out.iterdir()} == before
    assert os.listdir(tmp_path) == ["codes.parquet"]


@pytest.mark.parametrize("step", ["create_job", "write_parts", "finish_job"])
def test_the_slower_of_two_equal_jobs_returns_what_the_faster_wrote(
    frame: Any, model: snuh.Model, tmp_path: Path, step: str
) -> None:
    few, out = frame.limit(20).cache(), tmp_path / "codes.parquet"
    original, faster = getattr(encoding, step), []

    def overtaken(*args: Any) -> Any:
        if not faster:
            faster.append(None)
            faster[0] = write_codes(few, model, out, parts=3)
        return original(*args)

    with patch.object(encoding, step, overtaken):
        slower = write_codes(few, model, out, parts=2)
    assert not faster[0].already_written and slower.already_written and slower.documents == 20
    assert slower.parts == faster[0].parts == (3 if step == "create_job" else 2)
    assert len(read_codes(out)) == 20
    assert os.listdir(tmp_path) == ["codes.parquet"]


def test_the_first_of_two_equal_jobs_sets_the_number_of_parts(tmp_path: Path) -> None:
    folder, write_json = tmp_path / ".codes.0", encoding.write_json  # type: ignore[attr-defined]

    def overtaken(path: Path, value: dict[str, Any], **options: Any) -> None:
        write_json(path, value, **options)
        if value["parts"] == 3:  # before its folder is renamed
            encoding.create_job(folder, JOB, 5)

    with patch.object(encoding, "write_json", overtaken):
        encoding.create_job(folder, JOB, 3)
    encoding.create_job(folder, JOB, 7)
    assert encoding.read_json(folder / encoding.MANIFEST) == {**JOB, "parts": 5}  # type: ignore[attr-defined]
    assert os.listdir(tmp_path) == [folder.name]


@pytest.mark.long
def test_a_killed_executor_and_a_cancelled_job_leave_each_code_once(
    spark: Any, frame: Any, model: snuh.Model, codes: dict[str, bytes], tmp_path: Path
) -> None:
    out = tmp_path / "codes.parquet"
    victim = executor_processes()[0]
    job = BackgroundJob(lambda: write_codes(frame, model, out, parts=MANY_PARTS))
    wait_for(lambda: unfinished_parts(tmp_path))
    victim.send_signal(signal.SIGKILL)
    assert not job.is_done
    wait_for(lambda: job.is_done)
    assert job.error is None
    assert read_codes(out) == codes

    other = tmp_path / "stopped.parquet"
    job = BackgroundJob(lambda: write_codes(frame, model, other, parts=MANY_PARTS))
    wait_for(lambda: len(unfinished_parts(tmp_path)) >= 2)
    spark.sparkContext.cancelAllJobs()
    wait_for(lambda: job.is_done)
    assert isinstance(job.error, SnuhError) and "cancelled" in str(job.error)
    assert not other.exists()
    wait_for(lambda: not count_running_tasks(spark))  # a cancelled task may still finish its part
    reused = {path.name: path.stat().st_mtime_ns for path in unfinished_parts(tmp_path)}
    written = write_codes(frame, model, other)
    assert (written.parts, written.parts_reused) == (MANY_PARTS, len(reused))
    assert {name: (other / name).stat().st_mtime_ns for name in reused} == reused
    assert read_codes(other) == codes


def unfinished_parts(folder: Path) -> list[Path]:
    """Return the parts of unfinished jobs."""
    return list(folder.glob(".*/part-*.parquet"))
