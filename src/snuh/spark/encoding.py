"""Codes of a frame's documents, made on the executors: the same bits as on one machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

import snuh
from snuh.codes import code_column
from snuh.collection.model_files import files_of, model_of
from snuh.errors import InputError
from snuh.model import Model, load
from snuh.spark.documents import named_columns
from snuh.spark.failures import check_version

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import Broadcast
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "id string, code binary"


class SentModel(NamedTuple):
    """A model's files on their way to the executors."""

    fingerprint: str
    files: Broadcast[Mapping[str, bytes]]
    version: str


def encode(frame: DataFrame, model: Model | Path | str) -> DataFrame:
    """Return a frame of ids and codes, to be written wherever Spark writes; nothing is computed yet."""
    sent = send_model(frame.sparkSession, model)
    return named_columns(frame).select("id", "text").mapInArrow(partial(_encode_batches, sent=sent), SCHEMA)


def send_model(spark: SparkSession, model: Model | Path | str) -> SentModel:
    """Give a model that takes texts to the executors."""
    loaded = model if isinstance(model, Model) else load(model)
    if loaded.features is None:
        raise InputError("this model was trained on a matrix of features: it cannot read texts")
    files = files_of(loaded)
    return SentModel(files.fingerprint, spark.sparkContext.broadcast(files.content), snuh.__version__)


_received: dict[str, Model] = {}  # one process of an executor serves many tasks


def receive_model(sent: SentModel) -> Model:
    """Return the model on an executor, loaded once a process."""
    check_version(sent.version)
    if sent.fingerprint not in _received:
        _received.clear()
        _received[sent.fingerprint] = model_of(sent.files.value, where="this Spark job")
    return _received[sent.fingerprint]


class Codes(NamedTuple):
    """The codes of some texts, and whether each text holds a word that the model knows."""

    codes: NDArray[np.uint8]
    known: NDArray[np.bool_]


def encode_texts(model: Model, texts: list[str]) -> Codes:
    """Encode on one core."""
    if model.features is None:
        raise InputError("this model was trained on a matrix of features: it cannot read texts")
    rows = model.features.transform(texts, threads=1)
    return Codes(model.encoder.encode(rows), np.diff(rows.indptr) > 0)


def _encode_batches(batches: Iterable[pa.RecordBatch], *, sent: SentModel) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    model = receive_model(sent)
    for batch in batches:
        codes = encode_texts(model, batch["text"].to_pylist()).codes
        yield pa.RecordBatch.from_pydict({"id": batch["id"], "code": code_column(codes).cast(pa.binary())})
