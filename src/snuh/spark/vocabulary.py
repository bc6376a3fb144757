"""The vocabulary by Spark: words counted where the documents are, chosen as on one machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import snuh
from snuh.errors import InputError
from snuh.features import TfidfFeatures
from snuh.features.vocabulary import WordCounts, word_splitter
from snuh.spark.documents import split_of
from snuh.spark.failures import check_version
from snuh.spark.watching import Report, watched

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

WORDS_PER_BATCH = 50_000
WORDS_TO_EXPLAIN = 100_000  # looked at to say why no term is left


def fit_features(frame: DataFrame, features: TfidfFeatures, *, report: Report | None = None) -> None:
    """Learn the vocabulary of the training documents: terms and idf are those of `features.fit`."""
    from pyspark.sql import functions as F

    settings = features.settings
    count = partial(
        count_words, pattern=settings.token_pattern, lowercase=settings.lowercase, version=snuh.__version__
    )
    counted = (
        frame.select("text", "split")
        .mapInArrow(count, "word string, total long, in_documents long")
        .groupBy("word")
        .agg(F.sum("total").alias("total"), F.sum("in_documents").alias("in_documents"))
        .persist()
    )
    with watched(frame.sparkSession, report):
        try:
            counts = WordCounts()
            # The row without a word counts the documents.
            counts.documents = sum(row.total for row in counted.where("word is null").collect())
            if not counts.documents:
                raise InputError("there are no documents to learn from: expected some whose split is train")
            least, most = (
                frequency * counts.documents if isinstance(frequency, float) else frequency
                for frequency in (settings.min_df, settings.max_df)
            )
            words = counted.where("word is not null")
            within = words.where(F.col("in_documents").between(least, most))
            stop = sorted(settings.stop_list())
            chosen = within.where(~F.col("word").isin(stop)) if stop else within
            rows = chosen.orderBy(F.desc("total"), "word").limit(settings.max_terms).collect()
            for row in rows or words.limit(WORDS_TO_EXPLAIN).collect():
                counts.totals[row.word], counts.in_documents[row.word] = row.total, row.in_documents
        finally:
            counted.unpersist()
    features.fit_counts(counts)


def count_words(
    batches: Iterable[pa.RecordBatch], *, pattern: str, lowercase: bool, version: str
) -> Iterator[pa.RecordBatch]:
    """Count the words of one partition's training documents, and, in a row without a word, the documents."""
    import pyarrow as pa

    check_version(version)
    split = word_splitter(pattern, lowercase=lowercase)
    counts = WordCounts()
    for batch in batches:
        for text, part in zip(batch["text"].to_pylist(), batch["split"].to_pylist(), strict=True):
            if split_of(part) == "train":
                counts.add(split(text))
    names = ["word", "total", "in_documents"]
    yield pa.RecordBatch.from_pydict(
        {"word": pa.array([None], pa.string()), "total": [counts.documents], "in_documents": [0]}
    )
    words = list(counts.totals)
    for start in range(0, len(words), WORDS_PER_BATCH):
        part = words[start : start + WORDS_PER_BATCH]
        columns = [part, [counts.totals[word] for word in part], [counts.in_documents[word] for word in part]]
        yield pa.RecordBatch.from_pydict(dict(zip(names, columns, strict=True)))
