"""Encode the documents of a frame on the executors, with the same bits as on one machine.

`encode` returns a frame. `write_codes` writes a folder of Parquet files that is either complete or absent:

- Documents are partitioned by their ids. A task writes its part to a temporary file and renames it, in a
  hidden folder whose name is a hash of the job (the documents and the model).
- A job that is started again reuses the finished parts. The folder is renamed when all parts are there.
- If the same job runs twice at once, the slower run returns what the faster one wrote.
"""

from __future__ import annotations

import hashlib
import math
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from snuh.codes import code_column
from snuh.corpus import Document
from snuh.corpus.rows import VECTOR_FIELD
from snuh.errors import InputError, SnuhError
from snuh.io import dump_json, read_json, reporting_as_input_error, write_json
from snuh.model import Model
from snuh.spark.broadcast import BroadcastModel, broadcast_model, load_model
from snuh.spark.documents import check_documents, normalize_columns
from snuh.spark.jobs import Report, track_jobs

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

FORMAT, FORMAT_VERSION = "snuh-codes", 1
MANIFEST = "_snuh.json"  # readers of Parquet folders skip names that start with an underscore
DOCUMENTS_PER_PART = 100_000
UNKNOWN = b"without_known_words"  # key in the metadata of a part


@dataclass(frozen=True)
class WrittenCodes:
    """The outcome of `write_codes`."""

    folder: Path
    documents: int
    without_known_words: int
    parts: int
    parts_reused: int  # from an earlier run of the same job
    already_written: bool  # complete before this run, which wrote nothing


def encode(frame: DataFrame, model: Model | Path | str) -> DataFrame:
    """Return a lazy frame of ids and codes, which Spark can write to any of its targets.

    The column vector, if present, holds the vectors for a model that reads them.
    """
    handle = broadcast_model(frame.sparkSession, model)
    documents = _select(normalize_columns(frame))
    return documents.mapInArrow(partial(encode_batches, model=handle), "id string, code binary")


def encode_batches(batches: Iterable[pa.RecordBatch], *, model: BroadcastModel) -> Iterator[pa.RecordBatch]:
    """Encode the documents of one partition."""
    import pyarrow as pa

    loaded = load_model(model)
    for batch in batches:
        codes = _encode_batch(loaded, batch).codes
        yield pa.RecordBatch.from_pydict({"id": batch["id"], "code": code_column(codes).cast(pa.binary())})


class _Codes(NamedTuple):
    codes: NDArray[np.uint8]  # (docs, bits / 8)
    has_known_words: NDArray[np.bool_]  # (docs,)


def _select(frame: DataFrame) -> DataFrame:
    """Select what codes are made of: the text, and the vector if there is one."""
    return frame.select("id", "text", *[VECTOR_FIELD for name in frame.columns if name == VECTOR_FIELD])


def _encode_batch(model: Model, batch: pa.RecordBatch) -> _Codes:
    texts = batch["text"].to_pylist()
    vectors: list[Any] = [None] * len(texts)
    if model.vectors is not None and VECTOR_FIELD in batch.schema.names:
        vectors = batch[VECTOR_FIELD].to_pylist()
    documents = map(Document, batch["id"].to_pylist(), texts)
    with_vectors = [
        replace(document, vector=vector) for document, vector in zip(documents, vectors, strict=True)
    ]
    rows = model.document_rows(with_vectors, threads=1)  # a task has one core
    return _Codes(model.encoder.encode(rows), np.diff(rows.indptr) > 0)


def write_codes(
    frame: DataFrame,
    model: Model | Path | str,
    out: Path | str,
    *,
    parts: int | None = None,
    on_check: Report | None = None,
    on_progress: Report | None = None,
) -> WrittenCodes:
    """Write ids and codes to a folder of Parquet files that the driver and all executors can access.

    Args:
        frame: one document per row, with the columns id and text, and vector if the model reads vectors.
        model: a model or its folder.
        out: the folder; it must not exist, or hold the codes of these documents by this model.
        parts: number of files; None: one per 100,000 documents, and at least one per core.
        on_check: called with the fraction done of checking the documents.
        on_progress: called with the fraction done of encoding them.
    """
    if parts is not None and parts < 1:
        raise InputError(f"parts must be at least 1, got {parts}")
    target = Path(out).resolve()
    spark = frame.sparkSession
    frame = _select(normalize_columns(frame))
    handle = broadcast_model(spark, model)
    summary = check_documents(frame, report=on_check)
    job = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "model": handle.fingerprint,
        "documents": summary.documents,
        "checksum": summary.checksum,
    }
    if target.exists():
        return _read_finished(target, job)
    if parts is None:
        parts = max(math.ceil(summary.documents / DOCUMENTS_PER_PART), spark.sparkContext.defaultParallelism)
    folder = _job_folder(target, job)
    try:
        with reporting_as_input_error(out):
            create_job(folder, job, parts)
        parts = int(read_json(folder / MANIFEST)["parts"])
        finished = _finished_parts(folder)
        write_parts(frame, handle, folder, parts, finished, on_progress)
        return finish_job(target, folder, job, parts, len(finished))
    except (SnuhError, OSError):
        if not target.exists():
            raise
        written = _read_finished(target, job)  # another run of the same job was faster
        shutil.rmtree(folder, ignore_errors=True)
        return written


def _job_folder(target: Path, job: dict[str, Any]) -> Path:
    """Return the folder that holds the parts of a job until it is finished."""
    digest = hashlib.sha256(dump_json(job).encode()).hexdigest()[:12]
    return target.with_name(f".{target.name}.{digest}")


def create_job(folder: Path, job: dict[str, Any], parts: int) -> None:
    """Create the folder of a job with its manifest; an existing one, and its number of parts, stays."""
    temporary = folder.with_name(f"{folder.name}.{secrets.token_hex(4)}")
    temporary.mkdir(parents=True)
    try:
        write_json(temporary / MANIFEST, {**job, "parts": parts}, indent=2)
        os.rename(temporary, folder)  # fails if the folder exists, because that one is never empty
    except OSError:
        if not (folder / MANIFEST).is_file():
            raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_parts(
    frame: DataFrame,
    model: BroadcastModel,
    folder: Path,
    parts: int,
    finished: list[int],
    report: Report | None,
) -> None:
    """Encode the documents of the parts that are not finished, a file for each part."""
    from pyspark.sql import functions as F

    if finished:  # skip their documents, by the hash that `repartition` uses
        frame = frame.where(~F.expr(f"pmod(hash(id), {parts})").isin(finished))
    partitions = frame.repartition(parts, "id").sortWithinPartitions("id")
    write = partial(write_part, model=model, folder=str(folder), finished=frozenset(finished))
    with track_jobs(frame.sparkSession, report):
        partitions.mapInArrow(write, "part int").collect()


def write_part(
    batches: Iterable[pa.RecordBatch], *, model: BroadcastModel, folder: str, finished: frozenset[int]
) -> Iterator[pa.RecordBatch]:
    """Encode the documents of one partition to a file, unless that part is finished."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyspark import TaskContext

    context = TaskContext.get()
    number = 0 if context is None else context.partitionId()
    if number in finished:
        return
    loaded = load_model(model)
    schema = pa.schema([("id", pa.string()), ("code", pa.binary(loaded.bits // 8))])
    if not Path(folder).is_dir():
        raise InputError(f"{folder} does not exist on an executor: choose a folder that all of them share")
    temporary, unknown = Path(folder) / f".{secrets.token_hex(4)}.parquet", 0
    try:
        with pq.ParquetWriter(temporary, schema) as file:
            for batch in batches:
                codes, has_known_words = _encode_batch(loaded, batch)
                unknown += int((~has_known_words).sum())
                columns = [batch["id"].cast(pa.string()), code_column(codes)]
                file.write_table(pa.table(columns, schema=schema))
            file.add_key_value_metadata({UNKNOWN.decode(): str(unknown)})
        os.replace(temporary, Path(folder) / f"part-{number:05d}.parquet")
    finally:
        temporary.unlink(missing_ok=True)
    yield pa.RecordBatch.from_pydict({"part": pa.array([number], pa.int32())})


def _finished_parts(folder: Path) -> list[int]:
    return sorted(int(part.stem.removeprefix("part-")) for part in folder.glob("part-*.parquet"))


def finish_job(target: Path, folder: Path, job: dict[str, Any], parts: int, reused: int) -> WrittenCodes:
    """Check that every document has a code, complete the manifest and rename the folder."""
    import pyarrow.parquet as pq

    documents = unknown = 0
    for part in sorted(folder.glob("part-*.parquet")):
        metadata = pq.read_metadata(part)
        documents += metadata.num_rows
        unknown += int(metadata.metadata.get(UNKNOWN, b"0"))
    if documents != job["documents"]:
        raise InputError(
            f"{folder} holds {documents} codes, but the source had {job['documents']} documents: "
            "one of them changed during the job; remove the folder and start again"
        )
    temporary = folder / f".{secrets.token_hex(4)}"
    write_json(temporary, {**job, "parts": parts, "without_known_words": unknown}, indent=2)
    os.replace(temporary, folder / MANIFEST)
    os.rename(folder, target)
    # Left by killed tasks or another run; renaming the folder has made sure that no new ones appear.
    for leftover in target.glob(".*"):
        leftover.unlink(missing_ok=True)
    return WrittenCodes(target, documents, unknown, parts, reused, already_written=False)


def _read_finished(target: Path, job: dict[str, Any]) -> WrittenCodes:
    """Return the finished result of this job; InputError if the folder holds anything else."""
    path = target / MANIFEST
    manifest = read_json(path) if path.is_file() else {}
    if manifest.get("format") != FORMAT:
        raise InputError(f"{target} exists and holds no codes written by Spark: choose another folder")
    for name, difference in (
        ("model", "another model"),
        ("documents", "other documents"),
        ("checksum", "other documents"),
    ):
        if manifest.get(name) != job[name]:
            raise InputError(
                f"{target} holds codes of {difference}: choose another folder or remove this one"
            )
    parts, unknown = manifest["parts"], manifest["without_known_words"]
    return WrittenCodes(target, job["documents"], unknown, parts, parts, already_written=True)
