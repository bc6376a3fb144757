"""The neighbour graph by Spark: documents sorted into overlapping groups, neighbours sought within each.

Every document joins the few groups whose centres are nearest to it in LSA space; each group is searched
exactly, and of all that was found for a document its best are kept. Groups have a bounded size on average, so
the work for one document does not depend on how many there are, but for one small part: to sort it in, it is
compared with all centres, a thousandth of the documents (a 250th where the graph does not know LSA).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
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
from snuh.spark.shipping import Shipment, send_arrays
from snuh.spark.watching import Report, watched
from snuh.training.spectral import LSA

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

Floats = NDArray[np.float32]
Values = Callable[[sparse.csr_matrix], Floats]

GROUP_SIZE = 4_000  # documents, on average
GROUPS_PER_DOCUMENT, WITHOUT_LSA = 4, 16  # LSA finds its own neighbours better than those by words alone
SAMPLE_PER_GROUP, MAX_SAMPLE = 64, 200_000  # documents that the centres are made of
BLOCK = 20_000  # documents sorted, or merged, in one task
FOUND = "block int, row int, others array<int>, similarity array<float>"


@dataclass(frozen=True)
class Similarity:
    """The cosine of the rows, and the weight of the cosine in LSA space beside it."""

    directions: Floats  # (terms, dims)
    weight: float

    def values(self, X: sparse.csr_matrix) -> Floats:
        """Return unit rows in LSA space (docs, dims)."""
        return LSA(self.directions).unit_values(X)

    @property
    def groups(self) -> int:
        """How many groups each document joins."""
        return GROUPS_PER_DOCUMENT if self.weight else WITHOUT_LSA

    def beside(self, X: sparse.csr_matrix) -> list[DensePart]:
        """Return what is joined to sparse rows."""
        return [DensePart(self.values(X), self.weight)] if self.weight else []


def group_neighbors(
    spark: SparkSession,
    X: sparse.csr_matrix,
    similarity: Similarity,
    *,
    k: int,
    seed: int,
    shipment: Shipment | None = None,
    report: Report | None = None,
    group_size: int = GROUP_SIZE,
) -> Neighbors:
    """Find nearly all of the k most similar other documents of every document; see `nearest_neighbors`.

    A shipment that has the rows ("x") and the LSA ("directions") already spares sending them.
    """
    if k < 1:
        raise InputError(f"neighbors must be at least 1, got {k}")
    if shipment is None:
        shipment = send_arrays(spark, {"x": X, "directions": similarity.directions})
    docs = X.shape[0]
    centers = find_centers(X, similarity, groups=math.ceil(docs * similarity.groups / group_size), seed=seed)
    shipment = send_arrays(spark, {"centers": centers}, after=shipment)
    with watched(spark, report):
        blocks = spark.range(0, math.ceil(docs / BLOCK), numPartitions=math.ceil(docs / BLOCK))
        sorted_in = blocks.mapInArrow(
            partial(sort_into_groups, shipment=shipment, weight=similarity.weight), "group int, row int"
        )
        weight = similarity.weight
        # Functions without annotations: from those of a partial Spark cannot tell what it calls.
        found = sorted_in.groupBy("group").applyInArrow(
            lambda table: search_group(table, shipment=shipment, weight=weight, k=k), FOUND
        )
        best = found.groupBy("block").applyInArrow(lambda table: keep_best(table, k=k), FOUND).toArrow()
    rows = np.full((docs, k), -1, dtype=np.int32)
    values = np.zeros((docs, k), dtype=np.float32)
    for batch in best.to_batches():
        at, place = _places(batch)
        rows[at, place] = np.asarray(batch["others"].flatten())
        values[at, place] = np.asarray(batch["similarity"].flatten())
    return Neighbors(rows, values, _measure_recall(X, Neighbors(rows, values), similarity, seed=seed))


def _measure_recall(X: sparse.csr_matrix, found: Neighbors, similarity: Similarity, *, seed: int) -> float:
    """Return the share of the exact neighbours that were found, on a sample of the distinct documents."""
    first = find_unique_rows(X).first
    distinct = X[first]
    rows, k = combine(distinct, similarity.beside(distinct)), found.rows.shape[1]
    sample = RecallSample(rows, k=k, rng=np.random.default_rng(seed))
    return sample.recall(Neighbors(found.rows[first], found.similarity[first]))


def find_centers(X: sparse.csr_matrix, similarity: Similarity, *, groups: int, seed: int) -> Floats:
    """Return the centres (groups, dims) of a sample of the documents, split in two again and again."""
    from sklearn.cluster import BisectingKMeans

    rng = np.random.default_rng(seed)
    filled = np.flatnonzero(np.diff(X.indptr) > 0)
    limit = min(len(filled), MAX_SAMPLE, groups * SAMPLE_PER_GROUP)
    values = similarity.values(X[np.sort(rng.choice(filled, size=limit, replace=False))])
    distinct = np.unique(values, axis=0)
    groups = max(1, min(groups, len(distinct)))
    # Splitting the largest each time keeps the groups alike in size.
    means = BisectingKMeans(groups, random_state=seed, bisecting_strategy="largest_cluster").fit(distinct)
    centers: Floats = means.cluster_centers_.astype(np.float32)
    return centers


def sort_into_groups(
    batches: Iterable[pa.RecordBatch], *, shipment: Shipment, weight: float
) -> Iterator[pa.RecordBatch]:
    """Yield (group, row) for the nearest groups of every document of a block; an empty one is in none."""
    import pyarrow as pa

    similarity, centers = Similarity(shipment.array("directions"), weight), shipment.array("centers")
    X = shipment.rows("x", columns=len(similarity.directions))
    joined = min(similarity.groups, len(centers))
    lengths = (np.asarray(centers) ** 2).sum(axis=1)
    for block in (int(block) for batch in batches for block in batch["id"].to_pylist()):
        at = np.arange(block * BLOCK, min((block + 1) * BLOCK, X.shape[0]))
        at = at[np.diff(X.indptr)[at] > 0]
        distances = lengths - 2.0 * (similarity.values(X[at]) @ centers.T)
        nearest = np.argpartition(distances, joined - 1, axis=1)[:, :joined]
        yield pa.RecordBatch.from_pydict(
            {
                "group": nearest.ravel().astype(np.int32),
                "row": np.repeat(at, joined).astype(np.int32),
            }
        )


def search_group(table: pa.Table, *, shipment: Shipment, weight: float, k: int) -> pa.Table:
    """Return the nearest of every document of a group within it."""
    similarity = Similarity(shipment.array("directions"), weight)
    members = np.sort(table["row"].to_numpy())
    X = shipment.rows("x", columns=len(similarity.directions))[members]
    found = nearest_neighbors(X, k=k, dense_parts=similarity.beside(X), search="exact")
    present = found.rows >= 0
    return _found_table(members, present.sum(axis=1), members[found.rows[present]], found.similarity[present])


def keep_best(table: pa.Table, *, k: int) -> pa.Table:
    """Merge what the groups found for the documents of a block: each pair once, the best first."""
    table = table.combine_chunks()
    row = np.repeat(table["row"].to_numpy(), table["others"].combine_chunks().value_lengths().to_numpy())
    other = table["others"].combine_chunks().flatten().to_numpy()
    value = table["similarity"].combine_chunks().flatten().to_numpy()
    order = np.lexsort((other, -value, row))  # ties to the lower row
    row, other, value = row[order], other[order], value[order]
    pairs = row.astype(np.int64) << 32 | other
    first = np.sort(np.unique(pairs, return_index=True)[1])
    row, other, value = row[first], other[first], value[first]
    rows, starts = np.unique(row, return_index=True)
    kept = np.arange(len(row)) - np.repeat(starts, np.diff([*starts, len(row)])) < k
    sizes = np.add.reduceat(kept, starts) if len(starts) else np.zeros(0, dtype=np.int64)
    return _found_table(rows, sizes, other[kept], value[kept])


def _found_table(
    rows: NDArray[Any], sizes: NDArray[Any], others: NDArray[Any], similarity: NDArray[Any]
) -> pa.Table:
    import pyarrow as pa

    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    columns: Sequence[Any] = [
        (rows // BLOCK).astype(np.int32),
        rows.astype(np.int32),
        pa.ListArray.from_arrays(starts, others.astype(np.int32)),
        pa.ListArray.from_arrays(starts, similarity.astype(np.float32)),
    ]
    return pa.table(dict(zip(("block", "row", "others", "similarity"), columns, strict=True)))


def _places(batch: pa.RecordBatch) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return row and place in its list of every neighbour of a batch."""
    sizes = batch["others"].value_lengths().to_numpy()
    starts = np.cumsum(sizes) - sizes
    return np.repeat(batch["row"].to_numpy(), sizes), np.arange(sizes.sum()) - np.repeat(starts, sizes)
