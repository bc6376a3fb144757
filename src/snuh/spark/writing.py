"""Codes as a folder of Parquet files that is either whole or not there, and never written twice.

Documents are dealt out to parts by their ids. A task writes its part beside and renames it, in a folder that
only the same job (same documents, same model) would choose. A job that is started again finds the parts that
are done; the folder gets its name when all are. Started twice at once, the slower one finds what the faster
one wrote.
"""

from __future__ import annotations

import hashlib
import math
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from snuh.codes import code_column
from snuh.errors import InputError, SnuhError
from snuh.io import dump_json, read_json, reporting_as_input_error, write_json
from snuh.model import Model
from snuh.spark.documents import look_at, named_columns
from snuh.spark.encoding import SentModel, encode_texts, receive_model, send_model
from snuh.spark.watching import Report, watched

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

FORMAT, FORMAT_VERSION = "snuh-codes", 1
MANIFEST = "_snuh.json"  # names with an underscore are no data to readers of Parquet folders
DOCUMENTS_PER_PART = 100_000
UNKNOWN = b"without_known_words"  # in the metadata of a part


@dataclass(frozen=True)
class Written:
    """What became of a job."""

    folder: Path
    documents: int
    without_known_words: int
    parts: int
    parts_kept: int  # done by an earlier start of the same job
    was_there: bool  # whole already: nothing was done


def write_codes(
    frame: DataFrame,
    model: Model | Path | str,
    out: Path | str,
    *,
    parts: int | None = None,
    on_check: Report | None = None,
    on_progress: Report | None = None,
) -> Written:
    """Write ids and codes to a folder of Parquet files, which the driver and all executors see.

    Args:
        frame: one document a row, with the columns id and text.
        model: what encodes them, a model or its folder.
        out: the folder; it must not exist, or hold the codes of these documents by this model.
        parts: how many files; None: one for every 100,000 documents, and one for each core at least.
        on_check: told the share done of looking at the documents.
        on_progress: told the share done of encoding.
    """
    if parts is not None and parts < 1:
        raise InputError(f"parts must be at least 1, got {parts}")
    target = Path(out).resolve()
    spark = frame.sparkSession
    frame = named_columns(frame).select("id", "text")
    sent = send_model(spark, model)
    contents = look_at(frame, report=on_check)
    job = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "model": sent.fingerprint,
        "documents": contents.documents,
        "checksum": contents.checksum,
    }
    if target.exists():
        return _found(target, job)
    usual = max(math.ceil(contents.documents / DOCUMENTS_PER_PART), spark.sparkContext.defaultParallelism)
    beside = _folder_of(target, job)
    try:
        with reporting_as_input_error(out):
            _open_job(beside, job, parts or usual)
        count = int(read_json(beside / MANIFEST)["parts"])
        done = _done(beside)
        _write_parts(frame, sent, beside, count, done, on_progress)
        return _close_job(target, beside, job, count, len(done))
    except (SnuhError, OSError):
        if not target.exists():
            raise
        found = _found(target, job)  # the same job, started twice, was faster
        shutil.rmtree(beside, ignore_errors=True)
        return found


def _folder_of(target: Path, job: dict[str, Any]) -> Path:
    """Return where the parts of a job are until it is done."""
    name = hashlib.sha256(dump_json(job).encode()).hexdigest()[:12]
    return target.with_name(f".{target.name}.{name}")


def _open_job(beside: Path, job: dict[str, Any], parts: int) -> None:
    """Make the folder of the job, unless another start of it has; the first one says how many parts."""
    ready = beside.with_name(f"{beside.name}.{secrets.token_hex(4)}")
    ready.mkdir(parents=True)
    try:
        write_json(ready / MANIFEST, {**job, "parts": parts}, indent=2)
        os.rename(ready, beside)  # with its manifest, so that it is never empty, and never replaced
    except OSError:
        if not (beside / MANIFEST).is_file():
            raise
    finally:
        shutil.rmtree(ready, ignore_errors=True)


def _write_parts(
    frame: DataFrame, sent: SentModel, beside: Path, count: int, done: list[int], report: Report | None
) -> None:
    from pyspark.sql import functions as F

    if done:  # by the hash that also deals documents out to the parts
        frame = frame.where(~F.expr(f"pmod(hash(id), {count})").isin(done))
    dealt = frame.repartition(count, "id").sortWithinPartitions("id")
    write = partial(write_part, sent=sent, folder=str(beside), done=frozenset(done))
    with watched(frame.sparkSession, report):
        dealt.mapInArrow(write, "part int").collect()


def write_part(
    batches: Iterable[pa.RecordBatch], *, sent: SentModel, folder: str, done: frozenset[int]
) -> Iterator[pa.RecordBatch]:
    """Encode the documents of one part and write them; a part that is done is left alone."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyspark import TaskContext

    context = TaskContext.get()
    number = 0 if context is None else context.partitionId()
    if number in done:
        return
    model = receive_model(sent)
    schema = pa.schema([("id", pa.string()), ("code", pa.binary(model.bits // 8))])
    place = Path(folder)
    if not place.is_dir():
        raise InputError(f"{place} is not there on an executor: choose a folder that all of them see")
    beside, unknown = place / f".{secrets.token_hex(4)}.parquet", 0
    try:
        with pq.ParquetWriter(beside, schema) as file:
            for batch in batches:
                codes, known = encode_texts(model, batch["text"].to_pylist())
                unknown += int((~known).sum())
                columns = [batch["id"].cast(pa.string()), code_column(codes)]
                file.write_table(pa.table(columns, schema=schema))
            file.add_key_value_metadata({UNKNOWN.decode(): str(unknown)})
        os.replace(beside, place / f"part-{number:05d}.parquet")
    finally:
        beside.unlink(missing_ok=True)
    yield pa.RecordBatch.from_pydict({"part": pa.array([number], pa.int32())})


def _close_job(target: Path, beside: Path, job: dict[str, Any], count: int, kept: int) -> Written:
    import pyarrow.parquet as pq

    documents = unknown = 0
    for part in sorted(beside.glob("part-*.parquet")):
        metadata = pq.read_metadata(part)
        documents += metadata.num_rows
        unknown += int(metadata.metadata.get(UNKNOWN, b"0"))
    if documents != job["documents"]:
        raise InputError(
            f"{beside} holds {documents} codes, the source had {job['documents']} documents: "
            "it changed meanwhile, or the folder did; remove it and start again"
        )
    ready = beside / f".{secrets.token_hex(4)}"
    write_json(ready, {**job, "parts": count, "without_known_words": unknown}, indent=2)
    os.replace(ready, beside / MANIFEST)
    os.rename(beside, target)
    # Of tasks that were killed, or of another start: no more can come, now that the folder has its name.
    for left in target.glob(".*"):
        left.unlink(missing_ok=True)
    return Written(target, documents, unknown, count, kept, was_there=False)


def _found(target: Path, job: dict[str, Any]) -> Written:
    """Return what is there, if it is what the job would write."""
    manifest = target / MANIFEST
    there = read_json(manifest) if manifest.is_file() else {}
    if there.get("format") != FORMAT:
        raise InputError(f"{target} exists and holds no codes written by Spark: choose another place")
    for name, what in (
        ("model", "another model"),
        ("documents", "other documents"),
        ("checksum", "other documents"),
    ):
        if there.get(name) != job[name]:
            raise InputError(f"{target} holds codes of {what}: choose another place, or remove it first")
    return Written(
        target, job["documents"], there["without_known_words"], there["parts"], there["parts"], was_there=True
    )


def _done(folder: Path) -> list[int]:
    return sorted(int(part.stem.removeprefix("part-")) for part in folder.glob("part-*.parquet"))
