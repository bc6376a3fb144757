"""Random spanning forests of the neighbour graph, and the weighted edges they leave to the objective.

The paper's text asks for depth-first spanning trees whose next neighbour is drawn by softmax(cos / alpha);
its printed Algorithm 2 never leaves the first node of its queue and so makes stars. Both samplers are here:
`depth_first` and `star`. A graph in several parts gives a forest, one tree a part.
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

# A hint for kernels: memory that is needed soon can be on its way while something else is done.


def _prefetch(context: Any, array: Any, index: Any) -> Any:  # whatever numba's compiler hands over
    """In a kernel: let the processor fetch `array[index]` of a contiguous array; changes no value."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        held = context.make_array(signature.args[0])(context, builder, arguments[0])
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        place = builder.bitcast(builder.gep(held.data, [arguments[1]]), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        hint: Any = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        # To read it, keep it in all caches, and it is data.
        builder.call(hint, [place, *(ir.Constant(number, value) for value in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


prefetch: Kernel = intrinsic(_prefetch)


WALKS = 4  # forests drawn by turns: 100,000 documents take half the time, and eight times 12,500 little more
LINE = 64  # bytes that come from memory together

Sampler = Literal["depth-first", "star"]
Pairs = npt.NDArray[np.int32]


@dataclass(frozen=True)
class WeightedEdges:
    """The edges of M forests, each once: w_ij is the share of the forests that contain it."""

    pairs: Pairs  # (edges, 2), first < second
    weight: npt.NDArray[np.float32]  # (edges,)
    similarity: npt.NDArray[np.float32]  # (edges,)


class ForestSampler:
    """Draws spanning forests (for `star`: sets of stars) of one graph, whose matrix is symmetric."""

    def __init__(
        self, adjacency: sparse.csr_matrix, *, alpha: float, sampler: Sampler = "depth-first"
    ) -> None:
        if not alpha > 0:
            raise InputError(f"alpha must be above 0, got {alpha}")
        if sampler not in ("depth-first", "star"):
            raise InputError(f'sampler must be "depth-first" or "star", got "{sampler}"')
        self._adjacency = adjacency
        self._chances = None if sampler == "star" else _softmax_chances(adjacency, alpha)

    def draw(self, rng: np.random.Generator, *, forests: int = 1) -> list[Pairs]:
        """Draw forests; each row of one is (parent, child)."""
        docs = self._adjacency.shape[0]
        indptr, indices = self._adjacency.indptr, self._adjacency.indices
        if self._chances is None:
            order = (rng.permutation(docs).astype(np.int32) for _ in range(forests))
            return [_star_forest(indptr, indices, one) for one in order]
        drawn = [(rng.permutation(docs).astype(np.int32), rng.random(docs)) for _ in range(forests)]
        orders, draws = (np.array(part) for part in zip(*drawn, strict=True))
        edges, found = _depth_first_forests(indptr, indices, self._chances, orders, draws)
        return [edges[forest, : found[forest]] for forest in range(forests)]


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
    forests: list[Pairs] = []
    while len(forests) < trees:
        forests += source.draw(rng, forests=min(WALKS, trees - len(forests)))
        if on_progress is not None:
            on_progress(len(forests) / trees)
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


@njit()
def _depth_first_forests(indptr, indices, chances, orders, draws):  # type: ignore[no-untyped-def]
    """Walk through the graph once for each row of orders, the walks by turns, a node at a time.

    A walk sees nearly every node once, at a place that nobody can foresee: alone it would wait for memory at
    each. So it asks for the next node's neighbours before the others have their turn.
    """
    forests, docs = orders.shape
    taken = np.zeros((forests, docs), dtype=np.uint8)
    unseen = np.empty((forests, docs), dtype=np.int32)  # neighbours not taken yet: without any, go back up
    limit = 0
    for node in range(docs):
        degree = indptr[node + 1] - indptr[node]
        unseen[:, node] = degree
        limit = max(limit, degree)
    open_chances = np.empty(limit, dtype=np.float64)
    edges = np.empty((forests, docs, 2), dtype=np.int32)
    found = np.zeros(forests, dtype=np.int64)
    stack = np.empty((forests, docs), dtype=np.int32)
    depth = np.zeros(forests, dtype=np.int64)
    is_new = np.zeros(forests, dtype=np.int32)  # 1 where the node on top of the stack was just taken
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
            # No branches in here: whether a neighbour is taken is anyone's guess.
            for k in range(degree):
                neighbor = indices[first + k]
                chance = chances[first + k]
                is_taken = taken[f, neighbor]
                unseen[f, neighbor] -= is_new[f]
                chance = 0.0 if is_taken else chance
                open_chances[k] = chance
                total += chance
                chosen = chosen if is_taken else k
            is_new[f] = 0
            if total == 0.0:
                depth[f] -= 1
                continue
            left = draws[f, found[f]] * total
            for k in range(degree):
                left -= open_chances[k]
                if left < 0.0:
                    chosen = k
                    break
            child = indices[first + chosen]
            for p in range(indptr[child], indptr[child + 1], LINE // 8):
                prefetch(chances, p)
                prefetch(indices, p)
            taken[f, child] = is_new[f] = 1
            edges[f, found[f], 0] = node
            edges[f, found[f], 1] = child
            found[f] += 1
            stack[f, depth[f]] = child
            depth[f] += 1
    return edges, found


@njit()
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
