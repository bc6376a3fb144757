"""Data-parallel training: TorchDistributor starts the workers, which average their gradients every step.

Of several that end early, only one is the cause. A worker that fails returns why, instead of raising, which
TorchDistributor would not pass on, and the first worker returns for all.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

import snuh
from snuh.errors import InputError
from snuh.methods import make
from snuh.progress import OnProgress
from snuh.spark.failures import LostWorkerError, check_version
from snuh.spark.farewell import Failure, failure_of
from snuh.spark.listening import Listener, Sender
from snuh.spark.shipping import Shipment, send_arrays
from snuh.spark.watching import watched

if TYPE_CHECKING:
    from pyspark.ml.torch.distributor import TorchDistributor
    from pyspark.sql import SparkSession

    from snuh.methods.estimator import TrainingData
    from snuh.methods.gradient import GradientHasher
    from snuh.methods.result import TrainingResult
    from snuh.methods.sharing import ProcessGroup
    from snuh.methods.tree_objective import Edges

logger = logging.getLogger(__name__)

MOST_LOSSES = 2  # of workers; after that training fails


@dataclass(frozen=True)
class Task:
    """What a worker needs to know beside the arrays."""

    method: str
    bits: int
    seed: int
    parameters: dict[str, Any]  # those of the estimator, with the worker's part of a batch
    has_edges: bool
    columns: int
    shipment: Shipment
    sender: Sender
    version: str


def train_on_workers(
    spark: SparkSession,
    estimator: GradientHasher,
    data: TrainingData,
    *,
    method: str,
    edges: Edges | None,
    shipment: Shipment,
    workers: int,
    on_progress: OnProgress | None,
) -> TrainingResult:
    """Train with so many workers, each on its share of the documents; as many steps as with one.

    The shipment has the rows ("x") and the LSA ("directions").
    """
    from pyspark.ml.torch.distributor import TorchDistributor

    docs = data.X.shape[0]
    batch = math.ceil(estimator.resolve("batch_size", docs) / workers)
    parameters = estimator.get_params() | {
        "batch_size": batch,
        "epochs": estimator.resolve("epochs", docs),
    }
    bits, seed = parameters.pop("n_bits"), parameters.pop("seed")
    arrays = {"held": data.X_val}
    if edges is not None:
        arrays |= {"pairs": edges.pairs, "weight": edges.weight, "prior": edges.prior}
    send_arrays(spark, arrays, after=shipment)
    with Listener(spark, on_progress) as listener:
        task = Task(
            method, bits, seed, parameters, edges is not None, data.X.shape[1], shipment, listener.sender,
            snuh.__version__,
        )  # fmt: skip
        distributor = TorchDistributor(num_processes=workers, local_mode=False, use_gpu=False)
        distributor.logger.setLevel(logging.WARNING)
        return _run_again(lambda: _run(spark, distributor, task))


def _run(spark: SparkSession, distributor: TorchDistributor, task: Task) -> TrainingResult:
    with watched(spark, None), _without_log_server():
        outcome = distributor.run(train_share, task)
    if isinstance(outcome, Failure):
        raise outcome.as_error()
    return cast("TrainingResult", outcome)


def _run_again(run: Callable[[], TrainingResult]) -> TrainingResult:
    """Start again where a worker was lost: Spark repeats single tasks, but not those that need each other."""
    for _ in range(MOST_LOSSES):
        try:
            return run()
        except LostWorkerError as error:
            logger.warning("training lost a worker and starts again (%s)", error)
    return run()


def check_workers(spark: SparkSession, workers: int) -> None:
    """Raise InputError where so many workers cannot run at the same time."""
    if workers < 1:
        raise InputError(f"workers must be at least 1, got {workers}")
    context = spark.sparkContext
    cores = context.defaultParallelism
    # Of a cluster, more may come: Spark waits for them.
    if str(context.master).startswith("local") and workers > cores:
        raise InputError(
            f"{workers} workers train at the same time, and Spark has {cores} cores: ask for fewer"
        )


def train_share(task: Task) -> TrainingResult | Failure | None:
    """Train as one worker of several; the first returns the result, or why there is none."""
    from snuh.methods.sharing import torch_process_group

    with torch_process_group() as group:
        try:
            result = _train(task, group)
        except Exception as error:  # of any kind: it has to reach the driver
            failure = failure_of(error, rank=group.rank)
            return failure if group.rank == 0 else None
        return result if group.rank == 0 else None


def _train(task: Task, group: ProcessGroup) -> TrainingResult:
    from snuh.methods.estimator import TrainingData
    from snuh.methods.lsa import LSA
    from snuh.methods.selection import HeldOutScore
    from snuh.methods.sharing import Shard, shard_documents

    check_version(task.version)
    X = task.shipment.rows("x", columns=task.columns)
    lsa = LSA(np.array(task.shipment.array("directions")))
    with task.sender.connected(is_sending=group.rank == 0) as report:
        documents = shard_documents(X.shape[0], rank=group.rank, size=group.size, seed=task.seed)
        held = task.shipment.rows("held", columns=task.columns)
        score = HeldOutScore(X, held, lsa, rng=np.random.default_rng(task.seed)) if group.rank == 0 else None
        shard = Shard(documents, _edges_of(task, documents), group)
        estimator = make(task.method, bits=task.bits, seed=task.seed, parameters=task.parameters)
        data = TrainingData(X, lsa, group.broadcast_score(score), held, shard)
        result: TrainingResult = estimator.train(data, report)
        return result


def _edges_of(task: Task, documents: Any) -> Edges | None:
    """Return the edges that touch the worker's documents."""
    from snuh.methods.tree_objective import Edges

    if not task.has_edges:
        return None
    pairs, weight, prior = (task.shipment.array(name) for name in ("pairs", "weight", "prior"))
    is_own = np.zeros(int(pairs.max(initial=-1)) + 1, dtype=bool)
    is_own[documents[documents < len(is_own)]] = True
    kept = is_own[pairs].any(axis=1)
    return Edges(pairs[kept], weight[kept], prior[kept])


@contextmanager
def _without_log_server() -> Iterator[None]:
    """Keep TorchDistributor from listening on every network, and from writing to our stderr what comes."""
    from pyspark.ml.torch import distributor

    usual = vars(distributor)["LogStreamingServer"]
    vars(distributor)["LogStreamingServer"] = _NoServer
    try:
        yield
    finally:
        vars(distributor)["LogStreamingServer"] = usual


class _NoServer:
    port = -1  # workers then write their log to the executor's

    def start(self, spark_host_address: str = "") -> None:
        pass

    def shutdown(self) -> None:
        pass
