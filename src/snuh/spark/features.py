"""TF-IDF features: the executors count words and compute rows, the driver selects terms and gathers rows.

Terms, their order, their idf and all rows equal those of `TfidfFeatures` on one machine, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

import snuh
from snuh.errors import InputError
from snuh.features import TfidfFeatures
from snuh.features.vocabulary import WordCounts, word_splitter
from snuh.spark.documents import parse_split
from snuh.spark.jobs import Report, check_version, track_jobs

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

COUNTS_SCHEMA = "word string, total long, in_documents long"
ROWS_SCHEMA = "id string, is_val boolean, terms array<int>, weights array<float>"
WORDS_PER_BATCH = 50_000
MAX_WORDS_TO_EXPLAIN = 100_000  # words sampled for the message that says why no term is left


def fit_features(frame: DataFrame, features: TfidfFeatures, *, report: Report | None = None) -> None:
    """Learn the vocabulary of the training documents, as `features.fit` does on one machine."""
    from pyspark.sql import functions as F

    settings = features.settings
    count = partial(
        count_words, pattern=settings.token_pattern, lowercase=settings.lowercase, version=snuh.__version__
    )
    counted = (
        frame.select("text", "split")
        .mapInArrow(count, COUNTS_SCHEMA)
        .groupBy("word")
        .agg(F.sum("total").alias("total"), F.sum("in_documents").alias("in_documents"))
        .persist()
    )
    with track_jobs(frame.sparkSession, report):
        try:
            counts = WordCounts()
            # The total of the null word is the number of documents.
            counts.documents = sum(row.total for row in counted.where("word is null").collect())
            if not counts.documents:
                raise InputError("no documents to train on: expected some whose split is train")
            min_documents, max_documents = (
                frequency * counts.documents if isinstance(frequency, float) else frequency
                for frequency in (settings.min_df, settings.max_df)
            )
            words = counted.where("word is not null")
            terms = words.where(F.col("in_documents").between(min_documents, max_documents))
            if stop_words := sorted(settings.stop_list()):
                terms = terms.where(~F.col("word").isin(stop_words))
            rows = terms.orderBy(F.desc("total"), "word").limit(settings.max_terms).collect()
            for row in rows or words.limit(MAX_WORDS_TO_EXPLAIN).collect():
                counts.totals[row.word], counts.in_documents[row.word] = row.total, row.in_documents
        finally:
            counted.unpersist()
    features.fit_counts(counts)


def count_words(
    batches: Iterable[pa.RecordBatch], *, pattern: str, lowercase: bool, version: str
) -> Iterator[pa.RecordBatch]:
    """Count the words of one partition's training documents; the null word counts the documents."""
    import pyarrow as pa

    check_version(version)
    split_words = word_splitter(pattern, lowercase=lowercase)
    counts = WordCounts()
    for batch in batches:
        for text, split in zip(batch["text"].to_pylist(), batch["split"].to_pylist(), strict=True):
            if parse_split(split) == "train":
                counts.add(split_words(text))
    yield pa.RecordBatch.from_pydict(
        {"word": pa.array([None], pa.string()), "total": [counts.documents], "in_documents": [0]}
    )
    words = list(counts.totals)
    for start in range(0, len(words), WORDS_PER_BATCH):
        chunk = words[start : start + WORDS_PER_BATCH]
        yield pa.RecordBatch.from_pydict(
            {
                "word": chunk,
                "total": [counts.totals[word] for word in chunk],
                "in_documents": [counts.in_documents[word] for word in chunk],
            }
        )


@dataclass(frozen=True)
class FeatureRows:
    """Rows to train on, and those of the split val, by which the best epoch is chosen."""

    X: sparse.csr_matrix
    X_val: sparse.csr_matrix | None


def gather_rows(frame: DataFrame, features: TfidfFeatures, *, report: Report | None = None) -> FeatureRows:
    """Compute the rows of all documents outside the split test, ordered by id."""
    transform = partial(transform_texts, state=features.to_json(), version=snuh.__version__)
    with track_jobs(frame.sparkSession, report):
        table = frame.select("id", "text", "split").mapInArrow(transform, ROWS_SCHEMA).toArrow()
    sizes = np.concatenate([np.asarray(chunk.value_lengths()) for chunk in table["terms"].chunks])
    terms = np.concatenate([np.asarray(chunk.flatten()) for chunk in table["terms"].chunks])
    weights = np.concatenate([np.asarray(chunk.flatten()) for chunk in table["weights"].chunks])
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    rows = sparse.csr_matrix((weights, terms, indptr), shape=(len(sizes), len(features.terms)))
    # Sorting by id makes the order independent of the partitioning.
    order = np.array(table["id"].to_numpy().argsort(kind="stable"))
    is_val = np.asarray(table["is_val"])[order]
    X = rows[order]
    return FeatureRows(X[~is_val], X[is_val]) if is_val.any() else FeatureRows(X, None)


def transform_texts(
    batches: Iterable[pa.RecordBatch], *, state: Mapping[str, Any], version: str
) -> Iterator[pa.RecordBatch]:
    """Turn the texts of one partition into TF-IDF rows, skipping the split test."""
    import pyarrow as pa

    check_version(version)
    features = TfidfFeatures.from_json(state)
    for batch in batches:
        splits = np.array([parse_split(split) for split in batch["split"].to_pylist()])
        training = np.flatnonzero(splits != "test")
        if not len(training):
            continue
        documents = batch.take(pa.array(training))
        rows = features.transform(documents["text"].to_pylist(), threads=1)
        yield pa.RecordBatch.from_pydict(
            {
                "id": documents["id"],
                "is_val": splits[training] == "val",
                "terms": pa.ListArray.from_arrays(rows.indptr, rows.indices),
                "weights": pa.ListArray.from_arrays(rows.indptr, rows.data),
            }
        )
