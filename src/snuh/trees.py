"""Random spanning forests of the neighbour graph, and the weighted edges they leave to the objective.

The paper's text asks for depth-first spanning trees whose next neighbour is drawn by softmax(cos / alpha);
its printed Algorithm 2 never leaves the first node of its queue and so makes stars. Both samplers are here:
`depth_first` and `star`. A graph in several parts gives a forest, one tree a part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from snuh.compiling import compiled
from snuh.errors import InputError

Sampler = Literal["depth-first", "star"]
Pairs = npt.NDArray[np.int32]


@dataclass(frozen=True)
class WeightedEdges:
    """The edges of M forests, each once: w_ij is the share of the forests that contain it."""

    pairs: Pairs  # (edges, 2), first < second
    weight: npt.NDArray[np.float32]  # (edges,)
    similarity: npt.NDArray[np.float32]  # (edges,)


class ForestSampler:
    """Draws spanning forests (for `star`: sets of stars) of one graph."""

    def __init__(
        self, adjacency: sparse.csr_matrix, *, alpha: float, sampler: Sampler = "depth-first"
    ) -> None:
        if not alpha > 0:
            raise InputError(f"alpha must be above 0, got {alpha}")
        if sampler not in ("depth-first", "star"):
            raise InputError(f'sampler must be "depth-first" or "star", got "{sampler}"')
        self._adjacency = adjacency
        self._chances = None if sampler == "star" else _softmax_chances(adjacency, alpha)

    def draw(self, rng: np.random.Generator) -> Pairs:
        """Draw one forest; each row is (parent, child)."""
        docs = self._adjacency.shape[0]
        indptr, indices = self._adjacency.indptr, self._adjacency.indices
        order = rng.permutation(docs).astype(np.int32)
        edges: Pairs
        if self._chances is None:
            edges = _star_forest(indptr, indices, order)
        else:
            edges = _depth_first_forest(indptr, indices, self._chances, order, rng.random(docs))
        return edges


def sample_edges(
    adjacency: sparse.csr_matrix,
    *,
    trees: int,
    alpha: float,
    sampler: Sampler = "depth-first",
    rng: np.random.Generator,
    on_progress: Callable[[float], None] | None = None,
) -> WeightedEdges:
    """Draw `trees` forests and merge them to edges with the weights w_ij of the multi-tree bound."""
    if trees < 1:
        raise InputError(f"trees must be at least 1, got {trees}")
    source = ForestSampler(adjacency, alpha=alpha, sampler=sampler)
    forests = []
    for drawn in range(trees):
        forests.append(source.draw(rng))
        if on_progress is not None:
            on_progress((drawn + 1) / trees)
    return merge_forests(forests, adjacency)


def merge_forests(forests: list[Pairs], adjacency: sparse.csr_matrix) -> WeightedEdges:
    """Count in how many of the forests each undirected edge appears."""
    docs = adjacency.shape[0]
    every = np.sort(np.concatenate(forests), axis=1).astype(np.int64)
    keys, counts = np.unique(every[:, 0] * docs + every[:, 1], return_counts=True)
    pairs = np.stack([keys // docs, keys % docs], axis=1).astype(np.int32)
    similarity = np.asarray(adjacency[pairs[:, 0], pairs[:, 1]], dtype=np.float32).ravel()
    return WeightedEdges(pairs, (counts / len(forests)).astype(np.float32), similarity)


def _softmax_chances(adjacency: sparse.csr_matrix, alpha: float) -> npt.NDArray[np.float64]:
    """exp(cos / alpha) of every edge, scaled in each row by its largest so that nothing overflows."""
    largest = np.repeat(adjacency.max(axis=1).toarray().ravel(), np.diff(adjacency.indptr))
    chances: npt.NDArray[np.float64] = np.exp((adjacency.data.astype(np.float64) - largest) / alpha)
    return np.maximum(chances, np.finfo(np.float64).tiny)


@compiled()
def _depth_first_forest(indptr, indices, chances, order, draws):  # type: ignore[no-untyped-def]
    # How many neighbours of each node are not in the forest yet, so that going back up reads no neighbours.
    # A node that is in it has its number below zero.
    docs = order.shape[0]
    taken = np.int32(-(2**30))
    unseen = np.empty(docs, dtype=np.int32)
    for node in range(docs):
        unseen[node] = indptr[node + 1] - indptr[node]
    edges = np.empty((docs, 2), dtype=np.int32)
    stack = np.empty(docs, dtype=np.int32)
    found = 0
    for root in order:
        if unseen[root] < 0:
            continue
        unseen[root] += taken
        stack[0] = root
        depth = 1
        is_new = True
        while depth > 0:
            node = stack[depth - 1]
            total = 0.0
            if is_new:
                for p in range(indptr[node], indptr[node + 1]):
                    left_over = unseen[indices[p]] - 1
                    unseen[indices[p]] = left_over
                    if left_over >= 0:
                        total += chances[p]
                is_new = False
            elif unseen[node] > taken:
                for p in range(indptr[node], indptr[node + 1]):
                    if unseen[indices[p]] >= 0:
                        total += chances[p]
            if total == 0.0:
                depth -= 1
                continue
            left = draws[found] * total
            child = -1
            for p in range(indptr[node], indptr[node + 1]):
                if unseen[indices[p]] >= 0:
                    child = indices[p]
                    left -= chances[p]
                    if left < 0.0:
                        break
            unseen[child] += taken
            is_new = True
            edges[found, 0] = node
            edges[found, 1] = child
            found += 1
            stack[depth] = child
            depth += 1
    return edges[:found]


@compiled()
def _star_forest(indptr, indices, order):  # type: ignore[no-untyped-def]
    docs = order.shape[0]
    visited = np.zeros(docs, dtype=np.bool_)
    edges = np.empty((docs, 2), dtype=np.int32)
    found = 0
    for root in order:
        if visited[root]:
            continue
        visited[root] = True
        for p in range(indptr[root], indptr[root + 1]):
            leaf = indices[p]
            if not visited[leaf]:
                visited[leaf] = True
                edges[found, 0] = root
                edges[found, 1] = leaf
                found += 1
    return edges[:found]
