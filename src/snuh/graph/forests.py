"""Random spanning forests of the neighbour graph, and the weighted edges that the objective sums over.

The text of the paper describes depth-first spanning trees whose next neighbour is drawn with probability
softmax(cos / alpha); its printed Algorithm 2 never leaves the first node of its queue and so makes stars.
Both samplers are here, `depth-first` and `star`. A graph with several components gives one tree for each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic
from scipy import sparse

from snuh._numba import Kernel, njit
from snuh.errors import InputError

BATCH_FORESTS = 4  # forests drawn together: for 100,000 documents this takes half the time of one by one
CACHE_LINE = 64  # bytes

Sampler = Literal["depth-first", "star"]
Pairs = npt.NDArray[np.int32]


@dataclass(frozen=True)
class WeightedEdges:
    """The distinct edges of M forests; w_ij is the fraction of the forests that contain edge ij."""

    pairs: Pairs  # (edges, 2), first < second
    weight: npt.NDArray[np.float32]  # (edges,)
    similarity: npt.NDArray[np.float32]  # (edges,)


class ForestSampler:
    """Draws spanning forests (with `star`: sets of stars) of a graph with a symmetric adjacency matrix."""

    def __init__(
        self, adjacency: sparse.csr_matrix, *, alpha: float, sampler: Sampler = "depth-first"
    ) -> None:
        if not alpha > 0:
            raise InputError(f"alpha must be above 0, got {alpha}")
        if sampler not in ("depth-first", "star"):
            raise InputError(f'sampler must be "depth-first" or "star", got "{sampler}"')
        self._adjacency = adjacency
        self._odds = None if sampler == "star" else _softmax_odds(adjacency, alpha)

    def draw(self, rng: np.random.Generator, *, forests: int = 1) -> list[Pairs]:
        """Draw forests; each row of one is (parent, child)."""
        docs = self._adjacency.shape[0]
        indptr, indices = self._adjacency.indptr, self._adjacency.indices
        if self._odds is None:
            return [
                _star_forest(indptr, indices, rng.permutation(docs).astype(np.int32)) for _ in range(forests)
            ]
        drawn = [(rng.permutation(docs).astype(np.int32), rng.random(docs)) for _ in range(forests)]
        orders, draws = (np.array(part) for part in zip(*drawn, strict=True))
        edges, sizes = _depth_first_forests(indptr, indices, self._odds, orders, draws)
        return [edges[forest, : sizes[forest]] for forest in range(forests)]


def sample_edges(
    adjacency: sparse.csr_matrix,
    *,
    trees: int,
    alpha: float,
    sampler: Sampler = "depth-first",
    rng: np.random.Generator,
    on_progress: Callable[[float], None] | None = None,
) -> WeightedEdges:
    """Draw `trees` forests and merge them into edges with the weights w_ij of the multi-tree bound."""
    if trees < 1:
        raise InputError(f"trees must be at least 1, got {trees}")
    source = ForestSampler(adjacency, alpha=alpha, sampler=sampler)
    forests: list[Pairs] = []
    while len(forests) < trees:
        forests += source.draw(rng, forests=min(BATCH_FORESTS, trees - len(forests)))
        if on_progress is not None:
            on_progress(len(forests) / trees)
    return merge_forests(forests, adjacency)


def merge_forests(forests: list[Pairs], adjacency: sparse.csr_matrix) -> WeightedEdges:
    """Return the distinct undirected edges, weighted by the fraction of the forests that contain them."""
    docs = adjacency.shape[0]
    edges = np.sort(np.concatenate(forests), axis=1).astype(np.int64)
    keys, counts = np.unique(edges[:, 0] * docs + edges[:, 1], return_counts=True)
    pairs = np.stack([keys // docs, keys % docs], axis=1).astype(np.int32)
    similarity = np.asarray(adjacency[pairs[:, 0], pairs[:, 1]], dtype=np.float32).ravel()
    return WeightedEdges(pairs, (counts / len(forests)).astype(np.float32), similarity)


def _softmax_odds(adjacency: sparse.csr_matrix, alpha: float) -> npt.NDArray[np.float64]:
    """Return exp(cos / alpha) of every edge, divided by the largest of its row to avoid overflow."""
    largest = np.repeat(adjacency.max(axis=1).toarray().ravel(), np.diff(adjacency.indptr))
    odds: npt.NDArray[np.float64] = np.exp((adjacency.data.astype(np.float64) - largest) / alpha)
    return np.maximum(odds, np.finfo(np.float64).tiny)


# numba's compiler passes untyped objects.
def _prefetch(context: Any, array: Any, index: Any) -> Any:
    """In a kernel: hint the processor to load `array[index]` of a contiguous array; changes no value."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        struct = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer, integer = ir.IntType(8).as_pointer(), ir.IntType(32)
        address = builder.bitcast(builder.gep(struct.data, [arguments[1]]), pointer)
        signature_type = ir.FunctionType(ir.VoidType(), [pointer, integer, integer, integer])
        intrinsic_function: Any = builder.module.declare_intrinsic("llvm.prefetch", [pointer], signature_type)
        # For reading, into all cache levels, as data.
        builder.call(intrinsic_function, [address, *(ir.Constant(integer, value) for value in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


prefetch: Kernel = intrinsic(_prefetch)


@njit()
def _depth_first_forests(indptr, indices, odds, orders, draws):  # type: ignore[no-untyped-def]
    """Search the graph depth first once per row of `orders`, interleaving the searches node by node.

    A search visits the nodes at unpredictable addresses, so on its own it would wait for memory at each one.
    Here it prefetches the neighbours of its next node while the other searches take a step.
    """
    forests, docs = orders.shape
    taken = np.zeros((forests, docs), dtype=np.uint8)
    unseen = np.empty((forests, docs), dtype=np.int32)  # neighbours not taken yet; at 0 the search backtracks
    max_degree = 0
    for node in range(docs):
        degree = indptr[node + 1] - indptr[node]
        unseen[:, node] = degree
        max_degree = max(max_degree, degree)
    open_odds = np.empty(max_degree, dtype=np.float64)
    edges = np.empty((forests, docs, 2), dtype=np.int32)
    sizes = np.zeros(forests, dtype=np.int64)
    stack = np.empty((forests, docs), dtype=np.int32)
    depth = np.zeros(forests, dtype=np.int64)
    is_new = np.zeros(forests, dtype=np.int32)  # 1 if the node on top of the stack was just taken
    roots = np.zeros(forests, dtype=np.int64)
    walking = forests
    while walking > 0:
        walking = 0
        for f in range(forests):
            while depth[f] > 0 and is_new[f] == 0 and unseen[f, stack[f, depth[f] - 1]] == 0:
                depth[f] -= 1
            if depth[f] == 0:
                while roots[f] < docs and taken[f, orders[f, roots[f]]]:
                    roots[f] += 1
                if roots[f] == docs:
                    continue
                stack[f, 0] = orders[f, roots[f]]
                taken[f, stack[f, 0]] = 1
                depth[f] = is_new[f] = 1
            walking += 1
            node = stack[f, depth[f] - 1]
            first, degree = indptr[node], indptr[node + 1] - indptr[node]
            total, chosen = 0.0, 0
            # No branches here: whether a neighbour is taken is unpredictable.
            for k in range(degree):
                neighbor = indices[first + k]
                value = odds[first + k]
                is_taken = taken[f, neighbor]
                unseen[f, neighbor] -= is_new[f]
                value = 0.0 if is_taken else value
                open_odds[k] = value
                total += value
                chosen = chosen if is_taken else k
            is_new[f] = 0
            if total == 0.0:
                depth[f] -= 1
                continue
            left = draws[f, sizes[f]] * total
            for k in range(degree):
                left -= open_odds[k]
                if left < 0.0:
                    chosen = k
                    break
            child = indices[first + chosen]
            for p in range(indptr[child], indptr[child + 1], CACHE_LINE // 8):
                prefetch(odds, p)
                prefetch(indices, p)
            taken[f, child] = is_new[f] = 1
            edges[f, sizes[f], 0] = node
            edges[f, sizes[f], 1] = child
            sizes[f] += 1
            stack[f, depth[f]] = child
            depth[f] += 1
    return edges, sizes


@njit()
def _star_forest(indptr, indices, order):  # type: ignore[no-untyped-def]
    docs = order.shape[0]
    visited = np.zeros(docs, dtype=np.bool_)
    edges = np.empty((docs, 2), dtype=np.int32)
    size = 0
    for root in order:
        if visited[root]:
            continue
        visited[root] = True
        for p in range(indptr[root], indptr[root + 1]):
            leaf = indices[p]
            if not visited[leaf]:
                visited[leaf] = True
                edges[size, 0] = root
                edges[size, 1] = leaf
                size += 1
    return edges[:size]
