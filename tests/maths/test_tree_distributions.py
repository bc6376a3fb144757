"""The tree-structured prior and posterior as full Gaussians on small graphs, one bit at a time."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse

from snuh.graph.forests import ForestSampler, merge_forests
from snuh.training.kl import edge_divergence, node_divergence
from tests.maths.test_gaussians import gaussian_divergence

DOCS = 7


def ring_with_chords() -> sparse.csr_matrix:
    """A small connected graph with cycles; the values are cosines."""
    rng = np.random.default_rng(3)
    edges = [(i, (i + 1) % DOCS) for i in range(DOCS)] + [(0, 3), (2, 5), (1, 4)]
    dense = np.zeros((DOCS, DOCS))
    for i, j in edges:
        dense[i, j] = dense[j, i] = rng.uniform(0.2, 0.9)
    return sparse.csr_matrix(dense)


def tree_covariance(
    pairs: np.ndarray, scale: np.ndarray, correlation: dict[tuple[int, int], float]
) -> np.ndarray:
    """The covariance of the tree distribution, from its definition as a product of edge densities.

    The precision of prod_i p(i) prod_edges p(i,j) / (p(i) p(j)) is the sum of the factors' precisions.
    """
    precision = np.diag(1.0 / scale**2)
    for i, j in pairs:
        t = correlation[tuple(sorted((int(i), int(j))))]
        pair = np.array([[scale[i] ** 2, t * scale[i] * scale[j]], [t * scale[i] * scale[j], scale[j] ** 2]])
        block = np.linalg.inv(pair) - np.diag(1.0 / scale[[i, j]] ** 2)
        precision[np.ix_([i, j], [i, j])] += block
    return np.linalg.inv(precision)


def some_forest(seed: int) -> np.ndarray:
    return ForestSampler(ring_with_chords(), alpha=0.3).draw(np.random.default_rng(seed))[0]


def prior_correlations(graph: sparse.csr_matrix, strength: float) -> dict[tuple[int, int], float]:
    rows, columns = graph.nonzero()
    return {
        (i, j): strength * graph[i, j] for i, j in zip(rows.tolist(), columns.tolist(), strict=True) if i < j
    }


@pytest.mark.parametrize("seed", range(3))
def test_tree_prior_has_the_singleton_and_edge_marginals_of_the_graph_prior(seed: int) -> None:
    graph = ring_with_chords()
    strength = 0.3  # small enough for I + lambda A to be positive definite
    full = np.eye(DOCS) + strength * graph.toarray()
    assert np.linalg.eigvalsh(full).min() > 0
    pairs = some_forest(seed)
    tree = tree_covariance(pairs, np.ones(DOCS), prior_correlations(graph, strength))
    np.testing.assert_allclose(np.diag(tree), 1.0, atol=1e-12)
    for i, j in pairs:
        np.testing.assert_allclose(tree[i, j], full[i, j], atol=1e-12)


def test_tree_prior_exists_where_the_graph_prior_does_not() -> None:
    graph = sparse.csr_matrix((np.ones((DOCS, DOCS)) - np.eye(DOCS)) * (ring_with_chords().toarray() > 0))
    assert np.linalg.eigvalsh(np.eye(DOCS) + 0.99 * graph.toarray()).min() < 0
    tree = tree_covariance(some_forest(0), np.ones(DOCS), prior_correlations(graph, 0.99))
    assert np.linalg.eigvalsh(tree).min() > 0


def test_tree_prior_correlates_two_documents_by_the_product_along_their_path() -> None:
    path = np.array([[0, 1], [1, 2], [2, 3]])
    tree = tree_covariance(path, np.ones(4), {(0, 1): 0.99, (1, 2): 0.5, (2, 3): 0.8})
    np.testing.assert_allclose(tree[0, 3], 0.99 * 0.5 * 0.8, atol=1e-12)


def posterior(seed: int) -> tuple[np.ndarray, np.ndarray, dict[tuple[int, int], float]]:
    rng = np.random.default_rng(seed)
    graph = ring_with_chords()
    correlation = {pair: rng.uniform(-0.9, 0.9) for pair in prior_correlations(graph, 1.0)}
    return rng.uniform(0, 1, DOCS), rng.uniform(0.1, 1.2, DOCS), correlation


def decomposed(
    pairs: np.ndarray,
    weight: np.ndarray,
    mu: np.ndarray,
    sigma: np.ndarray,
    prior: dict[tuple[int, int], float],
    gamma: dict[tuple[int, int], float],
) -> float:
    """sum_i KL_i + sum_edges w_ij (KL_ij - KL_i - KL_j) with the project's closed forms."""
    nodes = node_divergence(torch.from_numpy(mu), torch.from_numpy(sigma)).sum()
    keys = [tuple(sorted((int(i), int(j)))) for i, j in pairs]
    first, second = (torch.tensor([key[end] for key in keys]) for end in (0, 1))
    m, s = torch.from_numpy(mu), torch.from_numpy(sigma)
    edges = edge_divergence(
        m[first],
        s[first],
        m[second],
        s[second],
        prior=torch.tensor([prior[key] for key in keys], dtype=torch.float64),
        posterior=torch.tensor([gamma[key] for key in keys], dtype=torch.float64),
    )
    return float(nodes + (torch.from_numpy(weight) * edges).sum())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("strength", [0.0, 0.3, 0.99])
def test_tree_divergence_decomposes_into_nodes_and_edges(seed: int, strength: float) -> None:
    prior = prior_correlations(ring_with_chords(), strength)
    mu, sigma, gamma = posterior(seed)
    pairs = some_forest(seed)
    exact = gaussian_divergence(
        mu,
        tree_covariance(pairs, sigma, gamma),
        np.zeros(DOCS),
        tree_covariance(pairs, np.ones(DOCS), prior),
    )
    assert decomposed(pairs, np.ones(len(pairs)), mu, sigma, prior, gamma) == pytest.approx(exact, rel=1e-9)


def test_independent_posterior_against_tree_prior_is_the_case_of_zero_correlation() -> None:
    prior = prior_correlations(ring_with_chords(), 0.9)
    mu, sigma, gamma = posterior(5)
    pairs = some_forest(5)
    exact = gaussian_divergence(
        mu, np.diag(sigma**2), np.zeros(DOCS), tree_covariance(pairs, np.ones(DOCS), prior)
    )
    none = dict.fromkeys(gamma, 0.0)
    assert decomposed(pairs, np.ones(len(pairs)), mu, sigma, prior, none) == pytest.approx(exact, rel=1e-9)


def test_tree_divergence_is_the_graph_prior_s_own_where_the_graph_is_a_tree() -> None:
    pairs = some_forest(1)
    graph = ring_with_chords()
    on_tree = np.zeros((DOCS, DOCS))
    for i, j in pairs:
        on_tree[i, j] = on_tree[j, i] = graph[i, j]
    tree_graph = sparse.csr_matrix(on_tree)
    strength = 0.2
    prior = prior_correlations(tree_graph, strength)
    mu, sigma, gamma = posterior(2)
    # p_T shares p_G's edge marginals; beyond the edges p_G has no correlation, p_T the product of the path.
    full = np.eye(DOCS) + strength * on_tree
    tree = tree_covariance(pairs, np.ones(DOCS), prior)
    edges = on_tree != 0
    np.testing.assert_allclose(tree[edges], full[edges], atol=1e-12)
    exact = gaussian_divergence(mu, tree_covariance(pairs, sigma, gamma), np.zeros(DOCS), tree)
    assert decomposed(pairs, np.ones(len(pairs)), mu, sigma, prior, gamma) == pytest.approx(exact, rel=1e-9)


def test_multi_tree_bound_is_the_mean_of_the_trees() -> None:
    graph = ring_with_chords()
    prior = prior_correlations(graph, 0.8)
    mu, sigma, gamma = posterior(7)
    forests = [some_forest(seed) for seed in range(6)]
    merged = merge_forests(forests, graph)
    assert 0 < merged.weight.min() < merged.weight.max() <= 1
    of_trees = [
        gaussian_divergence(
            mu,
            tree_covariance(pairs, sigma, gamma),
            np.zeros(DOCS),
            tree_covariance(pairs, np.ones(DOCS), prior),
        )
        for pairs in forests
    ]
    together = decomposed(merged.pairs, merged.weight.astype(np.float64), mu, sigma, prior, gamma)
    assert together == pytest.approx(np.mean(of_trees), rel=1e-6)  # the weights are float32


def test_mean_of_the_trees_bounds_the_divergence_of_the_mixtures() -> None:
    """KL(mixture of q_T || mixture of p_T) <= mean of KL(q_T || p_T), by samples."""
    graph = ring_with_chords()
    prior = prior_correlations(graph, 0.8)
    mu, sigma, gamma = posterior(8)
    forests = [some_forest(seed) for seed in range(3)]
    q = [tree_covariance(pairs, sigma, gamma) for pairs in forests]
    p = [tree_covariance(pairs, np.ones(DOCS), prior) for pairs in forests]
    from tests.maths.test_gaussians import gaussian_log_density

    rng = np.random.default_rng(0)
    z = np.concatenate([rng.multivariate_normal(mu, covariance, size=50_000) for covariance in q])
    log_q = np.logaddexp.reduce([gaussian_log_density(z, mu, c) for c in q], axis=0)
    log_p = np.logaddexp.reduce([gaussian_log_density(z, np.zeros(DOCS), c) for c in p], axis=0)
    ratio = log_q - log_p
    mean_of_trees = np.mean(
        [gaussian_divergence(mu, a, np.zeros(DOCS), b) for a, b in zip(q, p, strict=True)]
    )
    assert ratio.mean() < mean_of_trees + 5 * ratio.std() / np.sqrt(len(ratio))
