"""Every parameter of the tree methods reaches the graph, the edges or the objective."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

from snuh.graph import DensePart, Neighbors, gaussian_affinity, nearest_neighbors
from snuh.graph.forests import sample_edges
from snuh.methods.snuh import SNUH
from snuh.methods.snuh_plus import SNUHPlus
from snuh.training.estimator import TrainingData
from snuh.training.gradient import Start
from snuh.training.tree_estimator import TreeHasher
from snuh.training.tree_objective import Edges, TreeObjective
from tests.methods.test_contract import planted_topics

DOCS = 150


def rows() -> sparse.csr_matrix:
    return planted_topics(1)[0][:DOCS]


def neighbors(k: int = 8) -> Neighbors:
    return nearest_neighbors(rows(), k=k)


def start_of(method: TreeHasher) -> Start:
    data: TrainingData = method.training_data(rows(), rows())
    return Start(data, np.random.default_rng(5), torch.Generator().manual_seed(5), None)


def built(method: TreeHasher) -> TreeObjective:
    return method.objective(start_of(method))


def assert_same_edges(found: Edges, expected: Edges) -> None:
    np.testing.assert_array_equal(found.pairs, expected.pairs)
    np.testing.assert_allclose(found.weight, expected.weight)
    np.testing.assert_allclose(found.prior, expected.prior)


@pytest.mark.parametrize(
    "given", [{"sampler": "star"}, {"alpha": 5.0}, {"trees": 3}, {"strength": 0.5}, {"affinity": "gaussian"}]
)
def test_edges_are_drawn_with_the_parameters_of_the_method(given: dict[str, Any]) -> None:
    def draw(**given: Any) -> Edges:
        return SNUH(**given).draw_edges(neighbors(), rng=np.random.default_rng(3), on_progress=None)

    found, default = draw(**given), draw()
    wanted = {"sampler": "depth-first", "alpha": 0.1, "trees": 20, **given}
    merged = sample_edges(
        neighbors().adjacency(),
        trees=wanted["trees"],
        alpha=wanted["alpha"],
        sampler=wanted["sampler"],
        rng=np.random.default_rng(3),
    )
    affinity = gaussian_affinity(merged.similarity, sigma=1.0) if "affinity" in given else 1.0
    prior = given.get("strength", 0.99) * affinity * np.ones_like(merged.weight)
    assert_same_edges(found, Edges(merged.pairs, merged.weight, prior))
    with pytest.raises(AssertionError):
        assert_same_edges(found, default)


def test_the_width_of_the_gaussian_affinity_is_sigma() -> None:
    def prior(sigma: float) -> np.ndarray:
        method = SNUH(affinity="gaussian", sigma=sigma)
        return method.draw_edges(neighbors(), rng=np.random.default_rng(0), on_progress=None).prior / 0.99

    np.testing.assert_allclose(np.log(prior(2.0)), np.log(prior(1.0)) / 2, rtol=1e-4)


def test_the_graph_has_the_given_number_of_neighbors() -> None:
    for k in (3, 9):
        method = SNUH(n_bits=8, neighbors=k)
        found = method._sample_edges(rows(), [], start_of(method))
        expected = method.draw_edges(neighbors(k), rng=np.random.default_rng(5), on_progress=None)
        assert_same_edges(found, expected)


def test_half_of_the_first_graph_s_similarity_is_from_lsa() -> None:
    method = SNUHPlus(n_bits=8)
    (part,) = method.graph_parts(rows(), start_of(method).data.lsa)
    assert part.weight == 0.5
    np.testing.assert_allclose(np.linalg.norm(part.rows, axis=1), 1, rtol=1e-5)


def test_a_quarter_of_the_rebuilt_graph_s_similarity_is_from_the_centred_means() -> None:
    method = SNUHPlus(n_bits=8, neighbors=6)
    start = start_of(method)
    objective = method.objective(start)
    encoder = objective.encoder()
    state = start.rng.bit_generator.state
    assert objective.rebuild_edges is not None
    found = objective.rebuild_edges(encoder)

    start.rng.bit_generator.state = state
    means = encoder.values(rows())
    means = means - means.mean(axis=0)
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    parts = [DensePart(start.data.lsa.unit_values(rows()), 0.375), DensePart(means, 0.25)]
    graph = nearest_neighbors(rows(), k=6, dense_parts=parts, rng=start.rng)
    assert_same_edges(found, method.draw_edges(graph, rng=start.rng, on_progress=None))


@pytest.mark.parametrize("bits", [16, 32, 64, 128])
def test_defaults_by_length_reach_the_objective(bits: int) -> None:
    objective = built(SNUHPlus(n_bits=bits))
    assert objective.beta == SNUHPlus.defaults_by_bits["beta"][bits]
    assert objective.word_dropout == SNUHPlus.defaults_by_bits["word_dropout"].get(bits, 0.2)


def test_tau_is_the_slope_of_the_means() -> None:
    sharp, flat = (built(SNUH(n_bits=8, tau=tau)).encoder().values(rows()) for tau in (0.1, 1.0))
    logit = np.log(sharp / (1 - sharp))
    np.testing.assert_allclose(logit, 10 * np.log(flat / (1 - flat)), rtol=1e-2, atol=1e-2)


def test_the_threshold_is_a_half_or_the_median() -> None:
    for threshold, is_half in (("half", True), ("median", False)):
        objective = built(SNUH(n_bits=8, threshold=threshold))
        with torch.no_grad():
            objective.bias[:8] -= 0.05  # the bits start balanced
        assert (objective.encoder().threshold == 0.5).all() == is_half


def test_the_learning_rate_falls_unless_decay_is_off() -> None:
    steps = {}
    for decay in (True, False):
        fitted = SNUH(n_bits=8, epochs=2, decay=decay, batch_size=DOCS, learning_rate=0.01, init_range=0.0)
        steps[decay] = fitted.fit(rows(), X_val=rows()).encoder_.layers[0].weight
    assert np.abs(steps[True]).max() < np.abs(steps[False]).max()


def test_held_out_documents_are_not_trained_on() -> None:
    X = planted_topics(1)[0]
    data = SNUH(n_bits=8).training_data(X)
    assert data.X.shape[0] + data.X_val.shape[0] == X.shape[0] and data.X_val.shape[0] > 0
    trained, held = ({tuple(row.nonzero()[0]) for row in part.toarray()} for part in (data.X, data.X_val))
    assert not trained & held
