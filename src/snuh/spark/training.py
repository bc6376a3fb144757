"""Data-parallel training in a barrier stage: one task per worker, gradients averaged over gloo every step.

Spark starts all tasks of a barrier stage together. When one fails, it ends the others and reports the error
of the first to fail, so a worker that has only lost a peer waits, to leave that to the one that failed. Spark
carries nothing from a running task to the driver: epochs are reported when training is done.
"""

from __future__ import annotations

import logging
import math
import os
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import snuh
from snuh.errors import InputError
from snuh.methods import make
from snuh.progress import OnProgress, Progress, stage_callback
from snuh.spark.broadcast import BroadcastArrays, broadcast_arrays
from snuh.spark.jobs import LostWorkerError, check_version, track_jobs

if TYPE_CHECKING:
    from pyspark import BarrierTaskContext
    from pyspark.sql import SparkSession

    from snuh.training.distributed import ProcessGroup
    from snuh.training.estimator import TrainingData, TrainingResult
    from snuh.training.gradient import GradientHasher
    from snuh.training.tree_objective import Edges

logger = logging.getLogger(__name__)

MAX_RESTARTS = 2  # after a lost worker
LOST_PEER_SECONDS = 30.0  # for Spark to report why a worker has exited
ALLOW_PLAINTEXT = "spark.pytorch.distributor.ignoreSsl"  # the setting by which TorchDistributor allows it


@dataclass(frozen=True)
class TrainingJob:
    """What every worker needs in addition to the arrays."""

    method: str
    bits: int
    seed: int
    parameters: dict[str, Any]  # of the estimator; batch_size is the worker's part of a batch
    has_edges: bool
    columns: int
    arrays: BroadcastArrays
    version: str  # of snuh, on the driver


def train_on_workers(
    spark: SparkSession,
    estimator: GradientHasher,
    data: TrainingData,
    *,
    method: str,
    edges: Edges | None,
    arrays: BroadcastArrays,
    workers: int,
    on_progress: OnProgress | None,
) -> TrainingResult:
    """Train with n workers on a shard of the documents each, in as many steps as with one worker.

    The arrays on the executors must include the rows ("x") and the LSA ("directions").
    """
    docs = data.X.shape[0]
    epochs = estimator.resolve("epochs", docs)
    batch_size = math.ceil(estimator.resolve("batch_size", docs) / workers)
    parameters = estimator.get_params() | {"batch_size": batch_size, "epochs": epochs}
    bits, seed = parameters.pop("n_bits"), parameters.pop("seed")
    more = {"held": data.X_val}
    if edges is not None:
        more |= {"pairs": edges.pairs, "weight": edges.weight, "prior": edges.prior}
    broadcast_arrays(spark, more, extend=arrays)
    job = TrainingJob(
        method, bits, seed, parameters, edges is not None, data.X.shape[1], arrays, snuh.__version__
    )

    def run() -> TrainingResult:
        with track_jobs(spark, stage_callback(on_progress, "training")):
            tasks = spark.sparkContext.parallelize(range(workers), workers).barrier()
            result: TrainingResult = tasks.mapPartitions(partial(train_worker, job=job)).collect()[0]
            if on_progress is not None:
                for report in result.history:
                    on_progress(Progress("training", report.epoch / epochs, report))
            return result

    return _restart_if_lost(run)


def _restart_if_lost(run: Callable[[], TrainingResult]) -> TrainingResult:
    """Run again after a lost worker: Spark retries failed tasks, but not those of a barrier stage."""
    for _ in range(MAX_RESTARTS):
        try:
            return run()
        except LostWorkerError as error:
            logger.warning("training lost a worker and restarts (%s)", error)
    return run()


def check_workers(spark: SparkSession, workers: int) -> None:
    """Raise InputError if n workers cannot run at the same time, or would bypass the cluster's encryption."""
    if workers < 1:
        raise InputError(f"workers must be at least 1, got {workers}")
    context = spark.sparkContext
    cores = context.defaultParallelism
    # A cluster may still get more cores: Spark waits for them.
    if str(context.master).startswith("local") and workers > cores:
        raise InputError(f"{workers} workers need a core each, and Spark has {cores}: use fewer workers")
    settings = context.getConf()
    is_encrypted = settings.get("spark.ssl.enabled", "false") == "true"
    if workers > 1 and is_encrypted and settings.get(ALLOW_PLAINTEXT, "false") != "true":
        raise InputError(
            "spark.ssl.enabled does not cover what workers send each other: use 1 worker, or allow it with "
            f"--conf {ALLOW_PLAINTEXT}=true"
        )


def train_worker(_: Iterable[int], *, job: TrainingJob) -> Iterator[TrainingResult]:
    """Train as one task of a barrier stage; the first worker yields the result."""
    from pyspark import BarrierTaskContext

    from snuh.training.distributed import torch_process_group

    context = BarrierTaskContext.get()
    _set_rendezvous(context)
    try:
        with torch_process_group() as group:
            result = _train(job, group)
    except RuntimeError as error:
        if not _is_lost_peer(error):
            raise
        # If that one raised an error, Spark ends this task meanwhile. No context.barrier() here: Spark shuts
        # down the whole executor when it kills a Python task that waits at a barrier.
        time.sleep(LOST_PEER_SECONDS)
        raise LostWorkerError(f"a worker does not respond: {' '.join(str(error).split())}") from error
    if context.partitionId() == 0:
        yield result


def _set_rendezvous(context: BarrierTaskContext) -> None:
    """Set the environment variables by which PyTorch connects processes, with a free port of the first."""
    port = ""
    if context.partitionId() == 0:
        with socket.socket() as probe:
            probe.bind(("", 0))
            port = str(probe.getsockname()[1])
    tasks = context.getTaskInfos()
    os.environ.update(
        MASTER_ADDR=tasks[0].address.split(":")[0],
        MASTER_PORT=context.allGather(port)[0],
        RANK=str(context.partitionId()),
        WORLD_SIZE=str(len(tasks)),
    )


def _is_lost_peer(error: RuntimeError) -> bool:
    """Tell whether an error of PyTorch means that another worker is gone."""
    from torch.distributed import DistError

    return isinstance(error, DistError) or "gloo" in str(error)


def _train(job: TrainingJob, group: ProcessGroup) -> TrainingResult:
    from snuh.training.distributed import Shard, shard_documents
    from snuh.training.estimator import TrainingData
    from snuh.training.spectral import LSA
    from snuh.training.validation_score import HeldOutScore

    check_version(job.version)
    X = job.arrays.csr_matrix("x", columns=job.columns)
    held = job.arrays.csr_matrix("held", columns=job.columns)
    lsa = LSA(np.array(job.arrays.array("directions")))
    documents = shard_documents(X.shape[0], rank=group.rank, size=group.size, seed=job.seed)
    score = HeldOutScore(X, held, lsa, rng=np.random.default_rng(job.seed)) if group.rank == 0 else None
    shard = Shard(documents, _edges_of(job, documents), group)
    estimator = make(job.method, bits=job.bits, seed=job.seed, parameters=job.parameters)
    data = TrainingData(X, lsa, group.broadcast_score(score), held, shard)
    result: TrainingResult = estimator.train(data, None)
    return result


def _edges_of(job: TrainingJob, documents: Any) -> Edges | None:
    """Return the edges that touch the worker's documents."""
    from snuh.training.tree_objective import Edges

    if not job.has_edges:
        return None
    pairs, weight, prior = (job.arrays.array(name) for name in ("pairs", "weight", "prior"))
    is_own = np.zeros(int(pairs.max(initial=-1)) + 1, dtype=bool)
    is_own[documents[documents < len(is_own)]] = True
    touches = is_own[pairs].any(axis=1)
    return Edges(pairs[touches], weight[touches], prior[touches])
