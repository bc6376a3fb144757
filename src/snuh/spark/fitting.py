"""Fit a model to a Spark frame: vocabulary, rows, graph, trees and training.

The executors count words, compute rows, find neighbours and train. The driver holds the rows to train on and
their graph, about 1 kB per document: ten million documents fit into 16 GB.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from snuh.errors import check_arguments
from snuh.features import TfidfFeatures
from snuh.graph import Neighbors, nearest_neighbors
from snuh.graph.approximate import TARGET_RECALL
from snuh.hasher import check_known, training_versions
from snuh.methods import DEFAULT, info, make
from snuh.model import Model
from snuh.progress import OnProgress, stage_callback
from snuh.spark.broadcast import BroadcastArrays, broadcast_arrays
from snuh.spark.documents import check_documents, normalize_columns
from snuh.spark.features import fit_features, gather_rows
from snuh.spark.neighbors import Similarity, group_neighbors
from snuh.spark.training import check_workers, train_on_workers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from snuh.training.estimator import TrainingData, TrainingResult

logger = logging.getLogger(__name__)

MIN_DOCS_FOR_GROUPS = 20_000  # the driver compares all pairs of fewer documents in seconds


def fit(
    frame: DataFrame,
    *,
    method: str = DEFAULT,
    bits: int = 64,
    seed: int = 0,
    features: Mapping[str, Any] | None = None,
    parameters: Mapping[str, Any] | None = None,
    workers: int = 1,
    source: str = "spark",
    on_progress: OnProgress | None = None,
) -> Model:
    """Fit a model to the documents of a frame with the columns id and text, and optionally split.

    The vocabulary equals that of `TextHasher.fit`. Methods with a closed-form solution run on the driver.

    Args:
        frame: one document per row; `split` as in any source.
        method: a name listed by `snuh methods`.
        bits: length of the codes, a multiple of 8.
        seed: of all random numbers.
        features: parameters of `TfidfFeatures`.
        parameters: parameters of the method.
        workers: processes that train together, each on a core of the cluster.
        source: name of the source, recorded in the model.
        on_progress: called for every stage; the epochs of a training are reported together when it is done.
    """
    spark = frame.sparkSession
    check_workers(spark, workers)
    estimator = make(method, bits=bits, seed=seed, parameters=parameters)
    estimator.check_parameters()
    check_arguments(TfidfFeatures, features or {}, what="the features' settings")
    tfidf = TfidfFeatures(**(features or {}))
    frame = normalize_columns(frame)
    check_documents(frame)
    fit_features(frame, tfidf, report=stage_callback(on_progress, "words"))
    rows = gather_rows(frame, tfidf, report=stage_callback(on_progress, "rows"))
    check_known(rows.X, tfidf)

    def train(data: TrainingData) -> TrainingResult:
        arrays = broadcast_arrays(spark, {"x": data.X, "directions": data.lsa.directions})
        edges = None
        if has_trees(estimator):
            graph = _find_neighbors(spark, estimator, data, arrays, on_progress)
            rng = np.random.default_rng([seed, 1])
            edges = estimator.draw_edges(graph, rng=rng, on_progress=on_progress)
        return train_on_workers(
            spark,
            estimator,
            data,
            method=method,
            edges=edges,
            arrays=arrays,
            workers=workers,
            on_progress=on_progress,
        )

    has_epochs = info(method).needs_torch
    estimator.fit(rows.X, X_val=rows.X_val, on_progress=on_progress, train=train if has_epochs else None)
    return Model(
        encoder=replace(estimator.encoder_, unit_rows=False),  # TF-IDF rows have unit length already
        features=tfidf,
        method=method,
        parameters=estimator.get_params(),
        training={
            **estimator.training_,
            "workers": workers if has_epochs else 1,
            "source": source,
            "versions": training_versions(),
        },
        decoder=estimator.decoder_,
    )


def has_trees(estimator: object) -> bool:
    """Tell whether a method trains on spanning trees of a neighbour graph."""
    return hasattr(estimator, "draw_edges") and bool(estimator.uses_edges)  # type: ignore[attr-defined]


def _find_neighbors(
    spark: SparkSession,
    estimator: Any,  # a TreeHasher; importing it here would import PyTorch
    data: TrainingData,
    arrays: BroadcastArrays,
    on_progress: OnProgress | None,
) -> Neighbors:
    docs = data.X.shape[0]
    k = int(estimator.resolve("neighbors", docs))
    report = stage_callback(on_progress, "graph")
    dense_parts = estimator.graph_parts(data.X, data.lsa)
    is_exact = estimator.graph == "exact" or (estimator.graph == "auto" and docs < MIN_DOCS_FOR_GROUPS)
    if is_exact:
        graph = nearest_neighbors(data.X, k=k, dense_parts=dense_parts, search="exact", on_progress=report)
    else:
        similarity = Similarity(data.lsa.directions, sum(part.weight for part in dense_parts))
        graph = group_neighbors(
            spark, data.X, similarity, k=k, seed=int(estimator.seed), arrays=arrays, report=report
        )
        if graph.recall is not None and graph.recall < TARGET_RECALL:
            logger.warning("recall of the neighbour graph is only %.1f%%", 100 * graph.recall)
    data.graphs.append(graph.summary)
    return graph
