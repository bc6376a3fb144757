"""Feature rows made on the executors and gathered by the driver, in the order of the ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

import snuh
from snuh.features import TfidfFeatures
from snuh.spark.documents import split_of
from snuh.spark.failures import check_version
from snuh.spark.watching import Report, watched

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

SCHEMA = "id string, held boolean, terms array<int>, weights array<float>"


@dataclass(frozen=True)
class GatheredRows:
    """Rows to train on, and those of the split val, which choose the epoch."""

    X: sparse.csr_matrix
    X_val: sparse.csr_matrix | None


def gather_rows(frame: DataFrame, features: TfidfFeatures, *, report: Report | None = None) -> GatheredRows:
    """Weigh the words of all documents but those of the split test."""
    weigh = partial(weigh_words, state=features.to_json(), version=snuh.__version__)
    with watched(frame.sparkSession, report):
        found = frame.select("id", "text", "split").mapInArrow(weigh, SCHEMA).toArrow()
    sizes = np.concatenate([np.asarray(chunk.value_lengths()) for chunk in found["terms"].chunks])
    columns = [np.asarray(chunk.flatten()) for chunk in found["terms"].chunks]
    values = [np.asarray(chunk.flatten()) for chunk in found["weights"].chunks]
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    rows = sparse.csr_matrix(
        (np.concatenate(values), np.concatenate(columns), indptr), shape=(len(sizes), len(features.terms))
    )
    # Spark has no order of its own: that of the ids is the same however the documents are spread.
    order = np.array(found["id"].to_numpy().argsort(kind="stable"))
    held = np.asarray(found["held"])[order]
    X = rows[order]
    return GatheredRows(X[~held], X[held]) if held.any() else GatheredRows(X, None)


def weigh_words(
    batches: Iterable[pa.RecordBatch], *, state: Mapping[str, Any], version: str
) -> Iterator[pa.RecordBatch]:
    """Turn texts into TF-IDF rows, leaving out the split test."""
    import pyarrow as pa

    check_version(version)
    features = TfidfFeatures.from_json(state)
    for batch in batches:
        splits = [split_of(split) for split in batch["split"].to_pylist()]
        kept = [number for number, split in enumerate(splits) if split != "test"]
        if not kept:
            continue
        chosen = batch.take(pa.array(kept))
        rows = features.transform(chosen["text"].to_pylist(), threads=1)
        yield pa.RecordBatch.from_pydict(
            {
                "id": chosen["id"],
                "held": [splits[number] == "val" for number in kept],
                "terms": pa.ListArray.from_arrays(rows.indptr, rows.indices),
                "weights": pa.ListArray.from_arrays(rows.indptr, rows.data),
            }
        )
