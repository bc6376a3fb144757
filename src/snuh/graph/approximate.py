"""The approximate search: initial neighbour lists from clusters or postings, then rounds of NN-descent.

The work per document does not grow with the number of documents. The recall is measured on a sample.

Rows with a dense part are clustered, and the documents of a cluster are compared with those of the nearest
clusters (`kmeans_init`). Sparse rows are compared with the documents in which their terms weigh most
(`inverted_init`). Both compare by the whole hybrid similarity.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import prange
from scipy import sparse

from snuh._numba import njit, usable_processors
from snuh.graph.neighbors import (
    Columns,
    Floats,
    HybridRows,
    Indices,
    Integers,
    Neighbors,
    OnProgress,
    exact_search,
    insert,
    row_ranges,
    similarity_to,
)
from snuh.graph.nn_descent import MAX_LINKS, ComparedGroups, TopK, refine

DEFAULT_ROUNDS = 2
MAX_ROUNDS = 8  # reached only while the recall is below the target
TARGET_RECALL = 0.95
MIN_NEW_FRACTION = 0.01  # a round that finds fewer new neighbours is the last
RECALL_SAMPLE = 500
INIT_FRACTION = 0.6  # of the work, for the progress

CLUSTER_SIZE = 200  # documents per cluster on average
MAX_CLUSTER_SIZE = 4 * CLUSTER_SIZE  # larger clusters are split
MIN_CANDIDATES = 10_000  # documents of the nearest clusters that each document is compared with
KMEANS_SAMPLE = 40  # documents per centroid
KMEANS_ITERATIONS = 6

MAX_POSTINGS = 300  # documents per term
POSTING_CANDIDATES = 60  # documents that each one is compared with


def approximate_search(
    rows: HybridRows, *, k: int, rng: np.random.Generator, on_progress: OnProgress | None = None
) -> Neighbors:
    """Find most of the k most similar other rows of each row, and measure the recall."""
    width = max(k, MAX_LINKS)
    report = None if on_progress is None else (lambda done: on_progress(INIT_FRACTION * done))
    if rows.dense.shape[1]:
        start = kmeans_init(rows, k=width, rng=rng, on_progress=report)
    else:
        start = inverted_init(rows, k=width, on_progress=report)
    topk = TopK(start.neighbors.rows, start.neighbors.similarity, start.neighbors.rows >= 0)
    sample = RecallSample(rows, k=k, rng=rng)
    neighbors = None
    for done in range(1, MAX_ROUNDS + 1):
        topk = refine(start.rows, topk, start.compared)
        neighbors = None
        if on_progress is not None:
            on_progress(INIT_FRACTION + (1 - INIT_FRACTION) * min(1.0, done / DEFAULT_ROUNDS))
        if topk.is_new[:, :k].mean() < MIN_NEW_FRACTION:
            break
        if done >= DEFAULT_ROUNDS:
            neighbors = _in_row_order(topk, start.order, k=k)
            if sample.recall(neighbors) >= TARGET_RECALL:
                break
    if neighbors is None:
        neighbors = _in_row_order(topk, start.order, k=k)
    if on_progress is not None:
        on_progress(1.0)
    return Neighbors(neighbors.rows, neighbors.similarity, sample.recall(neighbors))


class RecallSample:
    """A sample of the rows with the similarity of their exact k-th neighbour, to measure recall."""

    def __init__(self, rows: HybridRows, *, k: int, rng: np.random.Generator) -> None:
        self._rows = np.sort(rng.choice(len(rows), size=min(RECALL_SAMPLE, len(rows)), replace=False))
        exact = exact_search(rows, k=k, subset=self._rows)
        exists = exact.rows >= 0
        self._total = int(exists.sum())
        self._lowest = np.where(exists, exact.similarity, np.inf).min(axis=1, keepdims=True)

    def recall(self, neighbors: Neighbors) -> float:
        """Return the fraction of the exact neighbours found.

        A neighbour counts if it is as similar as the exact k-th, so ties do not matter.
        """
        rows, similarity = neighbors.rows[self._rows], neighbors.similarity[self._rows]
        is_right = (rows >= 0) & (similarity >= self._lowest - 1e-6)
        return float(is_right.sum() / self._total) if self._total else 1.0


@dataclass(frozen=True)
class InitialGraph:
    """Initial neighbours of reordered rows, and the pairs that were compared to find them."""

    order: Indices  # (docs,), the original row of each
    rows: HybridRows
    neighbors: Neighbors
    compared: ComparedGroups


def _in_row_order(topk: TopK, order: Indices, *, k: int) -> Neighbors:
    """Map the lists of reordered rows back to the original rows, ties to the lower row."""
    rows, similarity = np.empty_like(topk.rows), np.empty_like(topk.similarity)
    rows[order] = np.where(topk.rows >= 0, order[topk.rows], -1)
    similarity[order] = topk.similarity
    best = np.lexsort((rows, -similarity), axis=-1)[:, :k]
    return Neighbors(np.take_along_axis(rows, best, axis=1), np.take_along_axis(similarity, best, axis=1))


def kmeans_init(
    rows: HybridRows, *, k: int, rng: np.random.Generator, on_progress: OnProgress | None
) -> InitialGraph:
    """Find the k nearest of each row among those of the nearest clusters of its dense part."""
    clusters = cluster_rows(rows.dense, rng=rng)
    rows = rows.take(clusters.order)
    neighbors = Neighbors.empty(len(rows), k)
    members = [np.arange(*clusters.offsets[i : i + 2]) for i in range(len(clusters.nearest))]
    for own, nearest in zip(members, clusters.nearest, strict=True):
        others = np.concatenate([members[other] for other in nearest])
        # The cluster itself comes first, so its members are the first columns.
        part = Columns(rows.take(others)).nearest(rows.take(own), exclude=np.arange(len(own)), k=k)
        neighbors.rows[own] = np.where(part.rows >= 0, others[part.rows], -1)
        neighbors.similarity[own] = part.similarity
        if on_progress is not None:
            on_progress((own[-1] + 1) / len(rows))
    offsets = np.append(0, np.cumsum([len(nearest) for nearest in clusters.nearest]))
    compared = ComparedGroups(clusters.labels, offsets, np.concatenate(clusters.nearest))
    return InitialGraph(clusters.order, rows, neighbors, compared)


@dataclass(frozen=True)
class Clusters:
    """Rows ordered by cluster, and the clusters that each cluster is compared with."""

    order: Indices  # (docs,), the row at each position
    offsets: Indices  # (clusters + 1,), the first position of each cluster
    nearest: list[Indices]  # for each cluster, itself first

    @property
    def labels(self) -> Integers:
        """The cluster at each position (docs,)."""
        return np.repeat(np.arange(len(self.nearest), dtype=np.int32), np.diff(self.offsets))


def cluster_rows(dense: Floats, *, rng: np.random.Generator) -> Clusters:
    """Cluster dense rows, and choose for each cluster enough nearest ones to compare it with."""
    centroids = _find_centroids(dense, count=max(1, len(dense) // CLUSTER_SIZE), rng=rng)
    assignments = _nearest_centroids(dense, centroids)
    order = np.argsort(assignments, kind="stable")
    firsts = np.searchsorted(assignments[order], np.arange(len(centroids)))
    pieces = (np.arange(len(order)) - firsts[assignments[order]]) // MAX_CLUSTER_SIZE
    keys, offsets = np.unique(assignments[order] * (len(order) + 1) + pieces, return_index=True)
    centroids = centroids[keys // (len(order) + 1)]
    offsets = np.append(offsets, len(order))
    return Clusters(order, offsets, _nearest_clusters(centroids, np.diff(offsets)))


def _find_centroids(dense: Floats, *, count: int, rng: np.random.Generator) -> Floats:
    """Return centroids by spherical k-means on a sample.

    It uses cosines and normalised means; the k-majority of `snuh.index` uses Hamming distances and bits.
    """
    size = min(len(dense), KMEANS_SAMPLE * count)
    sample = dense[np.sort(rng.choice(len(dense), size=size, replace=False))]
    centroids = sample[rng.choice(size, size=min(count, size), replace=False)]
    for _ in range(KMEANS_ITERATIONS):
        assignments = _nearest_centroids(sample, centroids)
        shape = (len(centroids), size)
        members = sparse.csr_matrix((np.ones(size, np.float32), (assignments, np.arange(size))), shape=shape)
        sums: Floats = members @ sample
        norms = np.linalg.norm(sums, axis=1, keepdims=True)
        centroids = np.where(norms > 0, sums / np.maximum(norms, np.finfo(np.float32).tiny), centroids)
    return centroids


def _nearest_centroids(dense: Floats, centroids: Floats) -> Indices:
    """Return the index of the centroid with the largest product for each row."""
    blocks = range(0, len(dense), 4096)
    return np.concatenate([(dense[b : b + 4096] @ centroids.T).argmax(axis=1) for b in blocks])


def _nearest_clusters(centroids: Floats, sizes: Indices) -> list[Indices]:
    nearest = []
    for cluster, centroid in enumerate(centroids):
        similarity = centroids @ centroid
        similarity[cluster] = np.inf
        ranked = np.argsort(-similarity, kind="stable")
        count = np.searchsorted(np.cumsum(sizes[ranked]), MIN_CANDIDATES) + 1
        nearest.append(ranked[:count])
    return nearest


def inverted_init(rows: HybridRows, *, k: int, on_progress: OnProgress | None) -> InitialGraph:
    """Find k neighbours of each row among the documents in which its terms weigh most."""
    neighbors = Neighbors.empty(len(rows), k)
    postings = truncate_postings(rows.X)
    for first, last in row_ranges(len(rows)):
        _compare_postings(
            *(rows.X.indptr, rows.X.indices, rows.X.data),
            *(postings.indptr, postings.indices, postings.data),
            *(rows.sparse_weight, rows.dense, max(POSTING_CANDIDATES, k)),
            *(neighbors.rows, neighbors.similarity, first, last, usable_processors()),
        )
        if on_progress is not None:
            on_progress(last / len(rows))
    one_group = np.zeros(len(rows), dtype=np.int32)
    nothing = ComparedGroups(one_group, np.zeros(2, dtype=np.int64), np.zeros(0, dtype=np.int64))
    return InitialGraph(np.arange(len(rows)), rows, neighbors, nothing)


def truncate_postings(X: sparse.csr_matrix) -> sparse.csc_matrix:
    """Return the columns with only their heaviest rows; of equal weights the lower rows stay."""
    columns = X.tocsc()
    terms = np.repeat(np.arange(X.shape[1]), np.diff(columns.indptr))
    ranked = np.lexsort((columns.indices, -columns.data, terms))
    rank: npt.NDArray[np.int64] = np.empty(len(ranked), dtype=np.int64)
    rank[ranked] = np.arange(len(ranked)) - columns.indptr[terms[ranked]]
    is_heavy = rank < MAX_POSTINGS
    indptr = np.append(0, np.cumsum(np.bincount(terms[is_heavy], minlength=X.shape[1])))
    return sparse.csc_matrix((columns.data[is_heavy], columns.indices[is_heavy], indptr), shape=X.shape)


@njit(parallel=True)
def _compare_postings(  # type: ignore[no-untyped-def]
    indptr,
    indices,
    data,
    post_indptr,
    post_rows,
    post_data,
    sparse_weight,
    dense,
    limit,
    rows,
    similarity,
    first,
    last,
    parts,
):
    """Rank documents by their products over the truncated postings, and compare the best `limit` of them."""
    docs, size = len(rows), last - first
    for part in prange(parts):
        scores = np.zeros(docs, dtype=np.float32)
        touched = np.empty(docs, dtype=np.int32)
        weights = np.zeros(len(post_indptr) - 1, dtype=np.float32)
        for row in range(first + part * size // parts, first + (part + 1) * size // parts):
            count = 0
            for p in range(indptr[row], indptr[row + 1]):
                weights[indices[p]] = data[p]
                for q in range(post_indptr[indices[p]], post_indptr[indices[p] + 1]):
                    other = post_rows[q]
                    if scores[other] == 0:
                        touched[count] = other
                        count += 1
                    scores[other] += data[p] * post_data[q]
            candidates = np.full(limit, -1, dtype=np.int32)
            candidate_scores = np.zeros(limit, dtype=np.float32)
            for t in range(count):
                other = touched[t]
                if other != row:
                    insert(candidates, candidate_scores, other, scores[other])
                scores[other] = 0
            for other in candidates:
                if other >= 0:
                    value = similarity_to(
                        weights, dense[row], other, indptr, indices, data, dense, sparse_weight
                    )
                    insert(rows[row], similarity[row], other, value)
            for p in range(indptr[row], indptr[row + 1]):
                weights[indices[p]] = 0
