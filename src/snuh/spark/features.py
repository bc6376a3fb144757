"""TF-IDF features: the executors count words and compute rows, the driver selects terms and gathers rows.

Terms, their order, their idf and all rows equal those of `TfidfFeatures` on one machine, bit for bit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

import snuh
from snuh.errors import InputError
from snuh.features import TfidfFeatures
from snuh.features.analyzer import Analyzer
from snuh.features.languages import function_words, recognize, script
from snuh.features.tfidf import Settings
from snuh.features.vocabulary import AUTO, MAX_SINGLE_LETTERS, WordCounts, frequent_words
from snuh.spark.documents import parse_split
from snuh.spark.jobs import Report, check_version, track_jobs

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

WORDS_SCHEMA = "word string, script string, total long"
TERMS_SCHEMA = "term string, total long, in_documents long"
ROWS_SCHEMA = "id string, is_val boolean, terms array<int>, weights array<float>"
WORDS_PER_BATCH = 50_000
MAX_WORDS_TO_EXPLAIN = 100_000  # terms sampled for the message that says why none is left


def fit_features(frame: DataFrame, features: TfidfFeatures, *, report: Report | None = None) -> None:
    """Learn the vocabulary of the training documents, as `features.fit` does on one machine."""
    from pyspark.sql import functions as F

    settings, texts = features.settings, frame.select("text", "split")
    words = (
        texts.mapInArrow(partial(count_words, version=snuh.__version__), WORDS_SCHEMA)
        .groupBy("word", "script")
        .agg(F.sum("total").alias("total"))
        .persist()
    )
    with track_jobs(frame.sparkSession, report):
        try:
            analyzer = settings.analyzer(_recognize(words) if settings.language == AUTO else ())
            state = analyzer.to_json()
            counted = (
                texts.mapInArrow(partial(count_terms, state=state, version=snuh.__version__), TERMS_SCHEMA)
                .groupBy("term")
                .agg(F.sum("total").alias("total"), F.sum("in_documents").alias("in_documents"))
                .persist()
            )
            try:
                counts = _collect_counts(counted, settings)
            finally:
                counted.unpersist()
            expand = partial(expand_words, state=state, terms=frozenset(counts.totals))
            # The words of a term, to show the most frequent one.
            rows = words.select("word", "total").mapInArrow(expand, "word string, total long").collect()
            counts.words = frequent_words({row.word: row.total for row in rows}, analyzer)
        finally:
            words.unpersist()
    features.fit_counts(counts, analyzer)


def _recognize(words: DataFrame) -> list[str]:
    """Return the languages of a corpus from the counts of its words."""
    from pyspark.sql import functions as F

    known = words.where(F.col("word").isin(sorted(function_words()))).collect()
    scripts = words.groupBy("script").agg(F.sum("total").alias("total")).collect()
    return recognize(
        {row.word: row.total for row in known}, {row.script: row.total for row in scripts if row.script}
    )


def _collect_counts(counted: DataFrame, settings: Settings) -> WordCounts:
    """Collect the frequencies of the terms that the vocabulary can have."""
    from pyspark.sql import functions as F

    counts = WordCounts()
    # The total of the null term is the number of documents.
    counts.documents = sum(row.total for row in counted.where("term is null").collect())
    if not counts.documents:
        raise InputError("no documents to train on: expected some whose split is train")
    min_documents, max_documents = (
        frequency * counts.documents if isinstance(frequency, float) else frequency
        for frequency in (settings.min_df, settings.max_df)
    )
    terms = counted.where("term is not null")
    # As many as there may be, and some for the single letters that are left out.
    limit = settings.max_terms + MAX_SINGLE_LETTERS
    chosen = terms.where(F.col("in_documents").between(min_documents, max_documents))
    rows = chosen.orderBy(F.desc("total"), "term").limit(limit).collect()
    for row in rows or terms.limit(MAX_WORDS_TO_EXPLAIN).collect():
        counts.totals[row.term], counts.in_documents[row.term] = row.total, row.in_documents
    return counts


def _training_texts(batches: Iterable[pa.RecordBatch]) -> Iterator[str]:
    for batch in batches:
        for text, split in zip(batch["text"].to_pylist(), batch["split"].to_pylist(), strict=True):
            if parse_split(split) == "train":
                yield text


def count_words(batches: Iterable[pa.RecordBatch], *, version: str) -> Iterator[pa.RecordBatch]:
    """Count the words of one partition's training documents, as they are written but for their case."""
    check_version(version)
    analyzer = Analyzer(stemming=False)
    counts: Counter[str] = Counter()
    for text in _training_texts(batches):
        counts.update(analyzer.terms(text))
    words = list(counts)
    yield from _column_batches(
        {
            "word": words,
            "script": [script(word[0]) for word in words],
            "total": [counts[word] for word in words],
        }
    )


def count_terms(
    batches: Iterable[pa.RecordBatch], *, state: Mapping[str, Any], version: str
) -> Iterator[pa.RecordBatch]:
    """Count the terms of one partition's training documents; the null term counts the documents."""
    check_version(version)
    analyzer = Analyzer.from_json(state)
    counts = WordCounts()
    for text in _training_texts(batches):
        counts.add(analyzer.terms(text))
    terms = list(counts.totals)
    yield from _column_batches(
        {
            "term": [None, *terms],
            "total": [counts.documents, *(counts.totals[term] for term in terms)],
            "in_documents": [0, *(counts.in_documents[term] for term in terms)],
        }
    )


def expand_words(
    batches: Iterable[pa.RecordBatch], *, state: Mapping[str, Any], terms: frozenset[str]
) -> Iterator[pa.RecordBatch]:
    """Keep the words that have one of the terms."""
    import pyarrow as pa

    analyzer = Analyzer.from_json(state)
    for batch in batches:
        kept = [not terms.isdisjoint(analyzer.expand(word)) for word in batch["word"].to_pylist()]
        yield batch.filter(pa.array(kept, pa.bool_()))


def _column_batches(columns: Mapping[str, list[Any]]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    length = len(next(iter(columns.values())))
    for start in range(0, length, WORDS_PER_BATCH):
        chunk = {name: values[start : start + WORDS_PER_BATCH] for name, values in columns.items()}
        yield pa.RecordBatch.from_pydict(
            {
                name: pa.array(values, pa.int64() if name in ("total", "in_documents") else pa.string())
                for name, values in chunk.items()
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
