"""From a Spark frame to a model: vocabulary, rows, graph, trees and training, each where it belongs.

The executors count and weigh the words, find the neighbours and train. The driver holds the rows to train on
and their graph: about a kilobyte a document, so ten million on a machine of 16 GB.
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
from snuh.hasher import training_versions
from snuh.methods import DEFAULT, info, make
from snuh.model import Model
from snuh.progress import OnProgress, stage_callback
from snuh.spark.documents import look_at, named_columns
from snuh.spark.neighbors import Similarity, group_neighbors
from snuh.spark.rows import gather_rows
from snuh.spark.shipping import Shipment, send_arrays
from snuh.spark.training import check_workers, train_on_workers
from snuh.spark.vocabulary import fit_features

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from snuh.training.estimator import TrainingData
    from snuh.training.result import TrainingResult

logger = logging.getLogger(__name__)

GROUPS_FROM = 20_000  # documents; fewer are compared with all others by the driver, in seconds


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
    """Learn a model from the documents of a frame with the columns id and text, and perhaps split.

    The vocabulary is that of `TextHasher.fit`. A method that is solved in one go is solved by the driver.

    Args:
        frame: one document a row; `split` as in any source.
        method: a name of `snuh methods`.
        bits: length of the codes, a multiple of 8.
        seed: of everything random.
        features: settings of `TfidfFeatures`.
        parameters: settings of the method.
        workers: processes that train together, each on a core of the cluster.
        source: what the model says that it was learnt from.
        on_progress: told about every stage and epoch.
    """
    spark = frame.sparkSession
    check_workers(spark, workers)
    estimator = make(method, bits=bits, seed=seed, parameters=parameters)
    estimator.check_parameters()
    check_arguments(TfidfFeatures, features or {}, what="the features' settings")
    vocabulary = TfidfFeatures(**(features or {}))
    frame = named_columns(frame)
    look_at(frame)
    fit_features(frame, vocabulary, report=stage_callback(on_progress, "words"))
    gathered = gather_rows(frame, vocabulary, report=stage_callback(on_progress, "rows"))

    def train(data: TrainingData) -> TrainingResult:
        shipment = send_arrays(spark, {"x": data.X, "directions": data.lsa.directions})
        edges = None
        if has_trees(estimator):
            found = _find_neighbors(spark, estimator, data, shipment, on_progress)
            rng = np.random.default_rng([seed, 1])
            edges = estimator.draw_edges(found, rng=rng, on_progress=on_progress)
        return train_on_workers(
            spark,
            estimator,
            data,
            method=method,
            edges=edges,
            shipment=shipment,
            workers=workers,
            on_progress=on_progress,
        )

    is_trained = info(method).needs_torch  # and not solved in one go
    estimator.fit(
        gathered.X, X_val=gathered.X_val, on_progress=on_progress, train=train if is_trained else None
    )
    return Model(
        encoder=replace(estimator.encoder_, unit_rows=False),  # rows of texts have unit length already
        features=vocabulary,
        method=method,
        parameters=estimator.get_params(),
        training={
            **estimator.training_,
            "workers": workers if is_trained else 1,
            "source": source,
            "versions": training_versions(),
        },
        decoder=estimator.decoder_,
    )


def has_trees(estimator: object) -> bool:
    """Tell whether a method is trained along trees of a graph."""
    return hasattr(estimator, "draw_edges") and bool(estimator.is_using_edges)  # type: ignore[attr-defined]


def _find_neighbors(
    spark: SparkSession,
    estimator: Any,  # a TreeHasher; importing it here would import PyTorch
    data: TrainingData,
    shipment: Shipment,
    on_progress: OnProgress | None,
) -> Neighbors:
    k = estimator.by_size("neighbors", data.X.shape[0])
    report = stage_callback(on_progress, "graph")
    beside = estimator.graph_parts(data.X, data.lsa)
    is_small = estimator.graph == "auto" and data.X.shape[0] < GROUPS_FROM
    if is_small or estimator.graph == "exact":
        found = nearest_neighbors(data.X, k=k, dense_parts=beside, search="exact", on_progress=report)
    else:
        similarity = Similarity(data.lsa.directions, sum(part.weight for part in beside))
        found = group_neighbors(
            spark, data.X, similarity, k=k, seed=int(estimator.seed), shipment=shipment, report=report
        )
        if found.recall is not None and found.recall < TARGET_RECALL:
            logger.warning("only %.1f%% of the exact neighbours were found", 100 * found.recall)
    data.graphs.append(found.summary)
    return found
