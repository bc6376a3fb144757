"""The neighbour graph on Spark: documents are assigned to overlapping groups, each searched exactly.

Every document joins the groups with the nearest centroids in LSA space, and the best neighbours from all its
groups are kept. The average group size is fixed, so the work per document does not depend on the size of the
corpus, with one small exception: assignment compares each document with all centroids, one per 1,000
documents (one per 250 if the graph does not use LSA).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from snuh.errors import InputError
from snuh.graph import DensePart, Neighbors, find_unique_rows, nearest_neighbors
from snuh.graph.approximate import RecallSample
from snuh.graph.neighbors import combine
from snuh.spark.broadcast import BroadcastArrays, broadcast_arrays
from snuh.spark.jobs import Report, track_jobs
from snuh.training.spectral import LSA

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

Floats = NDArray[np.float32]

GROUP_SIZE = 4_000  # documents, on average
GROUPS_WITH_LSA, GROUPS_WITHOUT_LSA = 4, 16  # per document; LSA predicts neighbours by words alone less well
SAMPLE_PER_GROUP, MAX_SAMPLE = 64, 200_000  # documents that the centroids are fitted to
BLOCK_SIZE = 20_000  # documents assigned, or merged, by one task
NEIGHBORS_SCHEMA = "block int, row int, neighbors array<int>, similarity array<float>"


@dataclass(frozen=True)
class Similarity:
    """The cosine of TF-IDF rows, mixed with the cosine in LSA space by its weight."""

    directions: Floats  # (terms, dims)
    weight: float

    def values(self, X: sparse.csr_matrix) -> Floats:
        """Return unit rows in LSA space (docs, dims)."""
        return LSA(self.directions).unit_values(X)

    @property
    def groups(self) -> int:
        """The number of groups that each document joins."""
        return GROUPS_WITH_LSA if self.weight else GROUPS_WITHOUT_LSA

    def dense_parts(self, X: sparse.csr_matrix) -> list[DensePart]:
        """Return the dense rows that are compared in addition to the sparse ones."""
        return [DensePart(self.values(X), self.weight)] if self.weight else []


def group_neighbors(
    spark: SparkSession,
    X: sparse.csr_matrix,
    similarity: Similarity,
    *,
    k: int,
    seed: int,
    arrays: BroadcastArrays | None = None,
    report: Report | None = None,
    group_size: int = GROUP_SIZE,
) -> Neighbors:
    """Find nearly all of the k most similar other documents of every document; see `nearest_neighbors`.

    Args:
        spark: the session to run on.
        X: TF-IDF rows (docs, terms).
        similarity: how documents are compared.
        k: neighbours per document.
        seed: of the centroids and of the sample that recall is measured on.
        arrays: arrays on the executors, if these include the rows ("x") and the LSA ("directions").
        report: called with the fraction done.
        group_size: documents per group, on average.
    """
    if k < 1:
        raise InputError(f"neighbors must be at least 1, got {k}")
    if arrays is None:
        arrays = broadcast_arrays(spark, {"x": X, "directions": similarity.directions})
    docs, weight = X.shape[0], similarity.weight
    n_groups = math.ceil(docs * similarity.groups / group_size)
    centroids = fit_centroids(X, similarity, groups=n_groups, seed=seed)
    arrays = broadcast_arrays(spark, {"centroids": centroids}, extend=arrays)
    with track_jobs(spark, report):
        n_blocks = math.ceil(docs / BLOCK_SIZE)
        assignments = spark.range(0, n_blocks, numPartitions=n_blocks).mapInArrow(
            partial(assign_groups, arrays=arrays, weight=weight), "group int, row int"
        )
        # Lambdas, because Spark inspects the annotations of the function and cannot read those of a partial.
        candidates = assignments.groupBy("group").applyInArrow(
            lambda table: search_group(table, arrays=arrays, weight=weight, k=k), NEIGHBORS_SCHEMA
        )
        merged = candidates.groupBy("block").applyInArrow(
            lambda table: merge_top_k(table, k=k), NEIGHBORS_SCHEMA
        )
        table = merged.toArrow()
    rows = np.full((docs, k), -1, dtype=np.int32)
    values = np.zeros((docs, k), dtype=np.float32)
    for batch in table.to_batches():
        row, rank = _row_and_rank(batch)
        rows[row, rank] = np.asarray(batch["neighbors"].flatten())
        values[row, rank] = np.asarray(batch["similarity"].flatten())
    recall = _measure_recall(X, Neighbors(rows, values), similarity, seed=seed)
    return Neighbors(rows, values, recall)


def _measure_recall(X: sparse.csr_matrix, graph: Neighbors, similarity: Similarity, *, seed: int) -> float:
    """Return the fraction of exact neighbours in the graph, on a sample of the distinct documents."""
    first = find_unique_rows(X).first
    distinct = X[first]
    rows, k = combine(distinct, similarity.dense_parts(distinct)), graph.rows.shape[1]
    sample = RecallSample(rows, k=k, rng=np.random.default_rng(seed))
    return sample.recall(Neighbors(graph.rows[first], graph.similarity[first]))


def fit_centroids(X: sparse.csr_matrix, similarity: Similarity, *, groups: int, seed: int) -> Floats:
    """Return the centroids (groups, dims) of a sample of the documents, by bisecting k-means."""
    from sklearn.cluster import BisectingKMeans

    rng = np.random.default_rng(seed)
    non_empty = np.flatnonzero(np.diff(X.indptr) > 0)
    size = min(len(non_empty), MAX_SAMPLE, groups * SAMPLE_PER_GROUP)
    values = similarity.values(X[np.sort(rng.choice(non_empty, size=size, replace=False))])
    distinct = np.unique(values, axis=0)
    groups = max(1, min(groups, len(distinct)))
    # Bisecting the largest cluster keeps the groups similar in size.
    kmeans = BisectingKMeans(groups, random_state=seed, bisecting_strategy="largest_cluster").fit(distinct)
    centroids: Floats = kmeans.cluster_centers_.astype(np.float32)
    return centroids


def assign_groups(
    batches: Iterable[pa.RecordBatch], *, arrays: BroadcastArrays, weight: float
) -> Iterator[pa.RecordBatch]:
    """Yield (group, row) for the nearest groups of every non-empty document of a block."""
    import pyarrow as pa

    similarity, centroids = Similarity(arrays.array("directions"), weight), arrays.array("centroids")
    X = arrays.csr_matrix("x", columns=len(similarity.directions))
    n_groups = min(similarity.groups, len(centroids))
    squared_norms = (np.asarray(centroids) ** 2).sum(axis=1)
    for block in (int(block) for batch in batches for block in batch["id"].to_pylist()):
        rows = np.arange(block * BLOCK_SIZE, min((block + 1) * BLOCK_SIZE, X.shape[0]))
        rows = rows[np.diff(X.indptr)[rows] > 0]
        distances = squared_norms - 2.0 * (similarity.values(X[rows]) @ centroids.T)
        nearest = np.argpartition(distances, n_groups - 1, axis=1)[:, :n_groups]
        yield pa.RecordBatch.from_pydict(
            {
                "group": nearest.ravel().astype(np.int32),
                "row": np.repeat(rows, n_groups).astype(np.int32),
            }
        )


def search_group(table: pa.Table, *, arrays: BroadcastArrays, weight: float, k: int) -> pa.Table:
    """Return the k nearest neighbours of every document of a group within the group."""
    similarity = Similarity(arrays.array("directions"), weight)
    members = np.sort(table["row"].to_numpy())
    X = arrays.csr_matrix("x", columns=len(similarity.directions))[members]
    graph = nearest_neighbors(X, k=k, dense_parts=similarity.dense_parts(X), search="exact")
    present = graph.rows >= 0
    return _neighbors_table(
        members, present.sum(axis=1), members[graph.rows[present]], graph.similarity[present]
    )


def merge_top_k(table: pa.Table, *, k: int) -> pa.Table:
    """Merge the neighbours that several groups found for the documents of a block, without duplicates."""
    table = table.combine_chunks()
    lists = table["neighbors"].combine_chunks()
    row = np.repeat(table["row"].to_numpy(), lists.value_lengths().to_numpy())
    neighbor = lists.flatten().to_numpy()
    value = table["similarity"].combine_chunks().flatten().to_numpy()
    order = np.lexsort((neighbor, -value, row))  # ties to the lower row
    row, neighbor, value = row[order], neighbor[order], value[order]
    pairs = row.astype(np.int64) << 32 | neighbor
    unique = np.sort(np.unique(pairs, return_index=True)[1])
    row, neighbor, value = row[unique], neighbor[unique], value[unique]
    rows, starts = np.unique(row, return_index=True)
    is_top = np.arange(len(row)) - np.repeat(starts, np.diff([*starts, len(row)])) < k
    sizes = np.add.reduceat(is_top, starts) if len(starts) else np.zeros(0, dtype=np.int64)
    return _neighbors_table(rows, sizes, neighbor[is_top], value[is_top])


def _neighbors_table(
    rows: NDArray[Any], sizes: NDArray[Any], neighbors: NDArray[Any], similarity: NDArray[Any]
) -> pa.Table:
    import pyarrow as pa

    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    return pa.table(
        {
            "block": (rows // BLOCK_SIZE).astype(np.int32),
            "row": rows.astype(np.int32),
            "neighbors": pa.ListArray.from_arrays(offsets, neighbors.astype(np.int32)),
            "similarity": pa.ListArray.from_arrays(offsets, similarity.astype(np.float32)),
        }
    )


def _row_and_rank(batch: pa.RecordBatch) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the row of every neighbour in a batch, and its rank among the row's neighbours."""
    sizes = batch["neighbors"].value_lengths().to_numpy()
    starts = np.cumsum(sizes) - sizes
    return np.repeat(batch["row"].to_numpy(), sizes), np.arange(sizes.sum()) - np.repeat(starts, sizes)
