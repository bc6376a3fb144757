from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from snuh.errors import InputError
from snuh.graph.forests import ForestSampler, merge_forests, sample_edges


def random_graph(docs: int, edges: int, seed: int) -> sparse.csr_matrix:
    rng = np.random.default_rng(seed)
    dense = np.zeros((docs, docs))
    for i, j in rng.integers(0, docs, size=(edges, 2)):
        if i != j:
            dense[i, j] = dense[j, i] = rng.uniform(0.1, 1)
    return sparse.csr_matrix(dense)


def components(docs: int, pairs: np.ndarray) -> int:
    links = sparse.coo_matrix((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(docs, docs))
    return int(connected_components(links, directed=False)[0])


@settings(max_examples=50)
@given(docs=st.integers(1, 40), edges=st.integers(0, 120), seed=st.integers(0, 10_000))
def test_a_forest_spans_every_component_and_has_no_cycle(docs: int, edges: int, seed: int) -> None:
    graph = random_graph(docs, edges, seed)
    forest = ForestSampler(graph, alpha=0.2).draw(np.random.default_rng(seed))[0]
    trees = int(connected_components(graph, directed=False)[0])
    assert components(docs, forest) == trees  # spanning: no more components than the graph
    assert len(forest) == docs - trees  # acyclic: no more edges than that takes
    assert all(graph[i, j] > 0 for i, j in forest)


def walk(graph: sparse.csr_matrix, alpha: float, order: np.ndarray, draws: np.ndarray) -> list[list[int]]:
    """A plain depth-first search."""
    taken: set[int] = set()
    edges: list[list[int]] = []
    for root in order.tolist():
        if root in taken:
            continue
        taken.add(root)
        stack = [root]
        while stack:
            row = graph[stack[-1]]
            free = [(int(j), value) for j, value in zip(row.indices, row.data, strict=True) if j not in taken]
            if not free:
                stack.pop()
                continue
            odds = np.exp((np.array([value for _, value in free]) - row.data.max()) / alpha)
            index = int(np.searchsorted(odds.cumsum(), draws[len(edges)] * odds.sum(), side="right"))
            child = free[min(index, len(free) - 1)][0]
            taken.add(child)
            edges.append([stack[-1], child])
            stack.append(child)
    return edges


@settings(max_examples=30)
@given(docs=st.integers(1, 40), edges=st.integers(0, 120), seed=st.integers(0, 10_000))
def test_a_forest_is_that_of_a_plain_depth_first_search(docs: int, edges: int, seed: int) -> None:
    graph, rng = random_graph(docs, edges, seed), np.random.default_rng(seed)
    drawn = ForestSampler(graph, alpha=0.2).draw(np.random.default_rng(seed))[0]
    assert drawn.tolist() == walk(graph, 0.2, rng.permutation(docs), rng.random(docs))


@settings(max_examples=50)
@given(docs=st.integers(1, 40), edges=st.integers(0, 120), seed=st.integers(0, 10_000))
def test_stars_have_no_path_of_three_edges(docs: int, edges: int, seed: int) -> None:
    graph = random_graph(docs, edges, seed)
    stars = ForestSampler(graph, alpha=0.2, sampler="star").draw(np.random.default_rng(seed))[0]
    centers, leaves = set(stars[:, 0].tolist()), stars[:, 1].tolist()
    assert len(leaves) == len(set(leaves))
    assert not centers & set(leaves)


def test_depth_first_goes_deep_where_stars_stay_shallow() -> None:
    complete = sparse.csr_matrix(np.ones((30, 30)) - np.eye(30))
    rng = np.random.default_rng(0)
    deep = ForestSampler(complete, alpha=1.0).draw(rng)[0]
    star = ForestSampler(complete, alpha=1.0, sampler="star").draw(rng)[0]
    assert np.bincount(deep.ravel()).max() == 2  # a path: the search never has to backtrack
    assert np.bincount(star.ravel()).max() == 29


def test_the_next_neighbor_is_drawn_by_softmax_of_cosine_over_alpha() -> None:
    cosine, alpha, draws = np.array([0.9, 0.7, 0.4]), 0.3, 6000
    dense = np.zeros((4, 4))
    dense[0, 1:] = dense[1:, 0] = cosine
    rng = np.random.default_rng(0)
    first = np.zeros(3)
    roots = 0
    sampler = ForestSampler(sparse.csr_matrix(dense), alpha=alpha)
    while roots < draws:
        forest = sampler.draw(rng)[0]
        if forest[0, 0] == 0:  # the root is the document with three neighbours
            first[forest[0, 1] - 1] += 1
            roots += 1
    expected = np.exp(cosine / alpha) / np.exp(cosine / alpha).sum()
    error = np.sqrt(expected * (1 - expected) / draws)
    assert (np.abs(first / draws - expected) < 5 * error).all()


def test_a_tiny_alpha_takes_the_most_similar_neighbor_without_overflow() -> None:
    graph = random_graph(40, 200, 1)
    forest = ForestSampler(graph, alpha=1e-6).draw(np.random.default_rng(0))[0]
    assert components(40, forest) == connected_components(graph, directed=False)[0]


@settings(max_examples=30)
@given(docs=st.integers(1, 40), edges=st.integers(0, 120), seed=st.integers(0, 10_000))
def test_forests_drawn_together_equal_those_drawn_one_by_one(docs: int, edges: int, seed: int) -> None:
    sampler = ForestSampler(random_graph(docs, edges, seed), alpha=0.2)
    together = sampler.draw(np.random.default_rng(seed), forests=5)
    rng = np.random.default_rng(seed)
    for forest in together:
        np.testing.assert_array_equal(forest, sampler.draw(rng)[0])


def test_weights_are_fractions_of_the_forests() -> None:
    graph = random_graph(20, 60, 3)
    rng = np.random.default_rng(0)
    forests = ForestSampler(graph, alpha=0.3).draw(rng, forests=8)
    merged = merge_forests(forests, graph)
    assert merged.weight.sum() == pytest.approx(np.mean([len(forest) for forest in forests]), rel=1e-6)
    assert (merged.pairs[:, 0] < merged.pairs[:, 1]).all()
    i, j = merged.pairs[0]
    count = sum({i, j} in [set(edge) for edge in forest.tolist()] for forest in forests)
    assert merged.weight[0] == pytest.approx(count / 8)
    np.testing.assert_allclose(merged.similarity, [graph[i, j] for i, j in merged.pairs], rtol=1e-6)


def test_the_same_seed_draws_the_same_edges() -> None:
    graph = random_graph(50, 200, 5)
    drawn = [
        sample_edges(graph, trees=4, alpha=0.2, rng=np.random.default_rng(seed)).pairs.tolist()
        for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]


@pytest.mark.parametrize(
    ("change", "message"), [({"alpha": 0}, "alpha"), ({"trees": 0}, "trees must be at least 1")]
)
def test_invalid_settings_are_refused(change: dict[str, float], message: str) -> None:
    settings_ = {"alpha": 0.1, "trees": 2, **change}
    with pytest.raises(InputError, match=message):
        sample_edges(random_graph(5, 9, 0), rng=np.random.default_rng(0), **settings_)
