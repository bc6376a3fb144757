"""Documents as a Spark frame with the columns id, text and split, followed by any other columns."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from snuh.corpus.document import SPLIT_NAMES
from snuh.corpus.rows import VECTOR_FIELD
from snuh.corpus.source import VARIABLE, find_corpus
from snuh.errors import InputError, suggest
from snuh.spark.jobs import Report, track_jobs
from snuh.text import quote

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

FORMATS = {".parquet": "parquet", ".jsonl": "json", ".jsonl.gz": "json", ".json": "json"}


@dataclass(frozen=True)
class CorpusSummary:
    """The number of documents, and a checksum of their ids and texts that does not depend on their order."""

    documents: int
    checksum: str


def read_documents(
    spark: SparkSession, source: str, *, text_field: str = "text", id_field: str = "id"
) -> DataFrame:
    """Read Parquet or JSON lines: a file, a folder of files, a URL that Spark reads, or a corpus name."""
    path, file_format = _resolve(source)
    with track_jobs(spark, None):
        if file_format == "json":
            frame = spark.read.option("mode", "FAILFAST").json(path)
        else:
            frame = spark.read.parquet(path)
        frame = normalize_columns(frame, text_field=text_field, id_field=id_field)
        cores = spark.sparkContext.defaultParallelism
        # A compressed file is read as a single partition, which would keep all cores but one idle.
        return frame.repartition(cores) if frame.rdd.getNumPartitions() < cores else frame


def normalize_columns(frame: DataFrame, *, text_field: str = "text", id_field: str = "id") -> DataFrame:
    """Return a frame with the string columns id, text and split; InputError if id or text is missing."""
    from pyspark.sql import functions as F

    columns = frame.columns
    _check_columns(columns, text_field=text_field, id_field=id_field)
    types = dict(frame.dtypes)
    if types[text_field] != "string":
        raise InputError(f"the column {quote(text_field)} must hold strings, got {types[text_field]}")
    others = [name for name in columns if name not in (text_field, id_field, "split")]
    split = F.col("split") if types.get("split") == "string" else F.lit(None).cast("string")
    return frame.select(
        _id_as_string(F.col(f"`{id_field}`"), id_field, types[id_field]).alias("id"),
        F.col(f"`{text_field}`").alias("text"),
        split.alias("split"),
        *[F.col(f"`{name}`") for name in others if name not in ("id", "text")],
    )


def check_documents(frame: DataFrame, *, report: Report | None = None) -> CorpusSummary:
    """Count the documents; InputError if there are none, an id or text is missing, or an id repeats."""
    from pyspark.sql import functions as F

    hashed = [name for name in ("id", "text", VECTOR_FIELD) if name in frame.columns]
    by_id = frame.groupBy("id").agg(
        F.count(F.lit(1)).alias("count"),
        F.sum(F.col("text").isNull().cast("long")).alias("null_texts"),
        F.sum(F.xxhash64(*hashed).cast("decimal(20,0)")).alias("hash_sum"),
    )
    has_no_id = F.col("id").isNull() | (F.col("id") == "")
    summary = by_id.agg(
        F.sum("count").alias("documents"),
        F.max("count").alias("max_count"),
        F.max_by("id", "count").alias("max_count_id"),
        F.max(F.when(F.col("null_texts") > 0, F.col("id"))).alias("null_text_id"),
        F.max(F.when(has_no_id, F.col("count"))).alias("without_id"),
        F.sum("hash_sum").alias("hash_sum"),
    )
    with track_jobs(frame.sparkSession, report):
        row = summary.collect()[0]
    if not row.documents:
        raise InputError("the source holds no documents")
    if row.without_id:
        raise InputError(f"{row.without_id} documents have no id: give each a stable, unique one")
    if row.max_count > 1:
        raise InputError(f"the id {quote(row.max_count_id)} occurs {row.max_count} times: ids must be unique")
    if row.null_text_id is not None:
        raise InputError(f"the document {quote(row.null_text_id)} has no text (null): add one or remove it")
    return CorpusSummary(row.documents, f"{int(row.hash_sum) % 2**64:016x}")


def parse_split(name: str | None) -> str:
    """Return the split that a document belongs to, train if it names none."""
    if not name:
        return "train"
    if (split := SPLIT_NAMES.get(name.strip().lower())) is None:
        raise InputError(f"split must be train, val or test, got {quote(name)}")
    return split


def _resolve(source: str) -> tuple[str, str]:
    """Return the path or URL of a source, and its format."""
    path = Path(source)
    is_name = "/" not in source and not os.path.exists(source) and os.environ.get(VARIABLE)
    if is_name and not source.endswith(tuple(FORMATS)):
        path = find_corpus(source, tuple(FORMATS))
    elif "://" in source:
        return source, _format_of(source)
    if not path.exists():
        raise InputError(f"{source}: no such file or folder")
    filenames = [entry.name for entry in path.iterdir() if entry.is_file()] if path.is_dir() else []
    data_files = [name for name in filenames if not name.startswith((".", "_"))]
    return str(path.resolve()), _format_of(data_files[0] if data_files else path.name)


def _format_of(filename: str) -> str:
    for suffix, file_format in FORMATS.items():
        if filename.rstrip("/").lower().endswith(suffix):
            return file_format
    raise InputError(f"{filename}: expected a file, or a folder of files, ending in {', '.join(FORMATS)}")


def _check_columns(columns: list[str], *, text_field: str, id_field: str) -> None:
    for name in columns:
        if columns.count(name) > 1:
            raise InputError(f"the column {quote(name)} occurs more than once: rename one")
    for role, name in (("text", text_field), ("id", id_field)):
        if name not in columns:
            available = ", ".join(map(quote, columns)) or "none"
            raise InputError(
                f"the source has no column {quote(name)}{suggest(name, columns)}; its columns: {available}; "
                f"use --{role}-field to name the one that holds the {role}"
            )


def _id_as_string(column: Column, name: str, column_type: str) -> Column:
    from pyspark.sql import functions as F

    if column_type in ("double", "float"):  # integers become floats where some are missing: 7.0 is the id "7"
        is_integer = column == F.floor(column)
        return F.when(is_integer, F.floor(column).cast("string")).otherwise(column.cast("string"))
    if column_type not in ("string", "tinyint", "smallint", "int", "bigint"):
        raise InputError(f"the column {quote(name)} must hold strings or numbers, got {column_type}")
    return column.cast("string")
