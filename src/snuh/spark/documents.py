"""Documents as a Spark frame: id, text and split, whatever their columns were called, and anything else."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from snuh.corpus.datasets import VARIABLE, find_corpus
from snuh.corpus.document import SPLIT_NAMES, quote
from snuh.errors import InputError, suggest
from snuh.spark.watching import Report, watched

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

FORMATS = {".parquet": "parquet", ".jsonl": "json", ".jsonl.gz": "json", ".json": "json"}


@dataclass(frozen=True)
class Contents:
    """What a look at all documents found."""

    documents: int
    checksum: str  # of ids and texts, whatever their order


def read_documents(
    spark: SparkSession, source: str, *, text_field: str = "text", id_field: str = "id"
) -> DataFrame:
    """Open Parquet or JSON lines: a file, a folder of files, a URL that Spark reads, or a corpus name."""
    place, form = _locate(source)
    with watched(spark, None):
        if form == "json":
            frame = spark.read.option("mode", "FAILFAST").json(place)
        else:
            frame = spark.read.parquet(place)
        frame = named_columns(frame, text_field=text_field, id_field=id_field)
        cores = spark.sparkContext.defaultParallelism
        # A compressed file cannot be read in parts: dealt out, all cores have work.
        return frame.repartition(cores) if frame.rdd.getNumPartitions() < cores else frame


def named_columns(frame: DataFrame, *, text_field: str = "text", id_field: str = "id") -> DataFrame:
    """Return a frame whose columns id and text are strings; InputError where it has none that could be."""
    from pyspark.sql import functions as F

    columns = _one_of_each(frame)
    for role, name in (("text", text_field), ("id", id_field)):
        if name not in columns:
            listed = ", ".join(map(quote, columns)) or "none"
            raise InputError(
                f"the source has no column {quote(name)}{suggest(name, columns)}; columns here: {listed}; "
                f"name the one that holds the {role} with --{role}-field"
            )
    kinds = dict(frame.dtypes)
    if kinds[text_field] != "string":
        raise InputError(f"the column {quote(text_field)} must hold strings, got {kinds[text_field]}")
    others = [name for name in columns if name not in (text_field, id_field, "split")]
    split = F.col("split") if kinds.get("split") == "string" else F.lit(None).cast("string")
    return frame.select(
        _id_of(F.col(f"`{id_field}`"), id_field, kinds[id_field]).alias("id"),
        F.col(f"`{text_field}`").alias("text"),
        split.alias("split"),
        *[F.col(f"`{name}`") for name in others if name not in ("id", "text")],
    )


def look_at(frame: DataFrame, *, report: Report | None = None) -> Contents:
    """Count and check all documents; InputError for none, one without id or text, or an id used twice."""
    from pyspark.sql import functions as F

    by_id = frame.groupBy("id").agg(
        F.count(F.lit(1)).alias("times"),
        F.sum(F.col("text").isNull().cast("long")).alias("bare"),
        F.sum(F.xxhash64("id", "text").cast("decimal(20,0)")).alias("hashes"),
    )
    nameless = F.col("id").isNull() | (F.col("id") == "")
    found = by_id.agg(
        F.sum("times").alias("documents"),
        F.max("times").alias("most"),
        F.max_by("id", "times").alias("often"),
        F.max(F.when(F.col("bare") > 0, F.col("id"))).alias("bare"),
        F.max(F.when(nameless, F.col("times"))).alias("nameless"),
        F.sum("hashes").alias("hashes"),
    )
    with watched(frame.sparkSession, report):
        row = found.collect()[0]
    if not row.documents:
        raise InputError("the source holds no documents")
    if row.nameless:
        raise InputError(f"{row.nameless} documents have no id: give each one that stays the same")
    if row.limit > 1:
        raise InputError(f"the id {quote(row.often)} is there {row.limit} times: ids must be unique")
    if row.bare is not None:
        raise InputError(f"the document {quote(row.bare)} has no text (null): give it one, or leave it out")
    return Contents(row.documents, f"{int(row.hashes) % 2**64:016x}")


def split_of(name: str | None) -> str:
    """Return the split of a document, train where it has none."""
    if not name:
        return "train"
    if (split := SPLIT_NAMES.get(name.strip().lower())) is None:
        raise InputError(f"split must be train, val or test, got {quote(name)}")
    return split


def _locate(source: str) -> tuple[str, str]:
    path = Path(source)
    is_name = "/" not in source and not os.path.exists(source) and os.environ.get(VARIABLE)
    if is_name and not source.endswith(tuple(FORMATS)):
        path = find_corpus(source, tuple(FORMATS))
    elif "://" in source:
        return source, _form(source)
    if not path.exists():
        raise InputError(f"{source}: no such file or folder")
    inside = [entry.name for entry in path.iterdir() if entry.is_file()] if path.is_dir() else []
    kept = [name for name in inside if not name.startswith((".", "_"))]
    return str(path.resolve()), _form(kept[0] if kept else path.name)


def _form(name: str) -> str:
    for suffix, form in FORMATS.items():
        if name.rstrip("/").lower().endswith(suffix):
            return form
    raise InputError(f"{name}: Spark reads files, or folders of files, ending in {', '.join(FORMATS)}")


def _one_of_each(frame: DataFrame) -> list[str]:
    columns = frame.columns
    repeated = [name for name in columns if columns.count(name) > 1]
    if repeated:
        raise InputError(f"the column {quote(repeated[0])} is there twice: rename one")
    return columns


def _id_of(column: Column, name: str, kind: str) -> Column:
    from pyspark.sql import functions as F

    if kind in ("double", "float"):  # whole numbers with gaps among them: 7.0 means 7
        return F.when(column == F.floor(column), F.floor(column).cast("string")).otherwise(
            column.cast("string")
        )
    if kind not in ("string", "tinyint", "smallint", "int", "bigint"):
        raise InputError(f"the column {quote(name)} must hold strings or numbers, got {kind}")
    return column.cast("string")
