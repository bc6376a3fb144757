from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from tests.graph.test_knn import some_rows, unit

from snuh.errors import InputError
from snuh.graph import DensePart, Neighbors, Search, nearest_neighbors
from snuh.graph.approximate import RecallSample, cluster_rows, truncate_postings
from snuh.graph.neighbors import combine
from snuh.graph.nn_descent import TopK, refine

K, DOCS, TOPICS, DIMS = 10, 1_500, 30, 16


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit the comparisons, so that not all pairs of a small corpus are compared."""
    monkeypatch.setattr("snuh.graph.approximate.CLUSTER_SIZE", 30)
    monkeypatch.setattr("snuh.graph.approximate.MIN_CANDIDATES", 200)
    monkeypatch.setattr("snuh.graph.approximate.MAX_CLUSTER_SIZE", 100)
    monkeypatch.setattr("snuh.graph.approximate.MAX_POSTINGS", 40)


def topics(docs: int = DOCS, seed: int = 0) -> tuple[sparse.csr_matrix, list[DensePart]]:
    """Return documents of 12 words, most of their topic, and dense rows around the topic's centroid."""
    rng = np.random.default_rng(seed)
    topic = rng.integers(0, TOPICS, docs)
    own = topic[:, None] * 20 + rng.integers(0, 20, (docs, 8))
    words = np.concatenate([own, rng.integers(0, TOPICS * 20, (docs, 4))], axis=1)
    rows = np.zeros((docs, TOPICS * 20))
    np.put_along_axis(rows, words, rng.random(words.shape) + 0.5, axis=1)
    dense = rng.standard_normal((TOPICS, DIMS))[topic] + 0.7 * rng.standard_normal((docs, DIMS))
    return sparse.csr_matrix(unit(rows)), [DensePart(unit(dense), 0.5)]


def recall_of(found: Neighbors, exact: Neighbors) -> float:
    pairs = zip(found.rows, exact.rows, strict=True)
    return float(np.mean([len(np.intersect1d(ours, theirs)) / K for ours, theirs in pairs]))


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("has_dense", [True, False])
def test_nearly_all_exact_neighbors_are_found_with_their_similarity(has_dense: bool) -> None:
    X, dense = topics()
    dense_parts = dense if has_dense else []
    exact = nearest_neighbors(X, k=K, dense_parts=dense_parts, search="exact")
    found = nearest_neighbors(X, k=K, dense_parts=dense_parts, search="approximate")
    recall = recall_of(found, exact)
    assert recall > 0.95
    assert exact.recall is None
    assert found.recall == pytest.approx(recall, abs=0.02)
    same = found.rows[:, 0] == exact.rows[:, 0]
    np.testing.assert_allclose(found.similarity[same, 0], exact.similarity[same, 0], atol=1e-5)
    assert (np.diff(found.similarity, axis=1) <= 0).all()
    assert not (found.rows == np.arange(DOCS)[:, None]).any()


@pytest.mark.usefixtures("small_steps")
def test_refining_finds_neighbors_that_the_initialisation_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("snuh.graph.approximate.MIN_CANDIDATES", 40)
    X, dense_parts = topics()
    exact = nearest_neighbors(X, k=K, dense_parts=dense_parts, search="exact")
    refined = nearest_neighbors(X, k=K, dense_parts=dense_parts, search="approximate")
    monkeypatch.setattr("snuh.graph.approximate.MAX_ROUNDS", 0)
    start = nearest_neighbors(X, k=K, dense_parts=dense_parts, search="approximate")
    assert recall_of(start, exact) < recall_of(refined, exact) - 0.02


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("has_dense", [True, False])
def test_the_same_seed_gives_the_same_neighbors_for_any_number_of_threads(
    has_dense: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, dense = topics(600)
    dense_parts = dense if has_dense else []
    first = nearest_neighbors(
        X, k=K, dense_parts=dense_parts, search="approximate", rng=np.random.default_rng(3)
    )
    monkeypatch.setattr("snuh.graph.nn_descent.usable_processors", lambda: 5)
    monkeypatch.setattr("snuh.graph.neighbors.CALL_ROWS", 170)
    done: list[float] = []
    again = nearest_neighbors(
        X,
        k=K,
        dense_parts=dense_parts,
        search="approximate",
        rng=np.random.default_rng(3),
        on_progress=done.append,
    )
    np.testing.assert_array_equal(first.rows, again.rows)
    np.testing.assert_array_equal(first.similarity, again.similarity)
    assert first.recall == again.recall
    assert done == sorted(done)
    assert done[-1] == 1.0


@pytest.mark.parametrize("has_dense", [True, False])
def test_few_documents_are_all_compared(has_dense: bool) -> None:
    X, dense = topics(120)
    dense_parts = dense if has_dense else []
    exact = nearest_neighbors(X, k=K, dense_parts=dense_parts, search="exact")
    found = nearest_neighbors(X, k=K, dense_parts=dense_parts, search="approximate")
    np.testing.assert_allclose(found.similarity, exact.similarity, atol=1e-5)
    assert found.recall == 1.0


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("has_dense", [True, False])
def test_duplicates_and_empty_documents_are_treated_as_in_the_exact_search(has_dense: bool) -> None:
    X, dense = topics(400)
    rows = X.toarray()
    rows[7] = 0
    rows[300:310] = rows[20]
    dense_parts = dense if has_dense else []
    found = nearest_neighbors(sparse.csr_matrix(rows), k=K, dense_parts=dense_parts, search="approximate")
    assert (found.rows[7] == -1).all()
    assert not (found.rows == 7).any()
    assert found.rows[300:310, 0].tolist() == [20, *range(300, 309)]
    assert (found.rows[300:310, 1:] == -1).all()
    assert (found.rows[20] >= 0).all()


def test_ties_go_to_the_lower_row() -> None:
    dense = [DensePart(unit(np.tile([[1.0, 2.0]], (60, 1))), 0.5)]
    X = sparse.csr_matrix(np.eye(60, dtype=np.float32))  # all pairs are equally similar
    found = nearest_neighbors(X, k=3, dense_parts=dense, search="approximate")
    assert found.rows[0].tolist() == [1, 2, 3]
    assert found.rows[40].tolist() == [0, 1, 2]


@pytest.mark.usefixtures("small_steps")
def test_rows_without_zeros_are_searched_too() -> None:
    X = sparse.csr_matrix(topics()[1][0].rows)
    found = nearest_neighbors(X, k=K, search="approximate")
    assert recall_of(found, nearest_neighbors(X, k=K, search="exact")) > 0.95


def test_auto_is_exact_for_few_documents_and_approximate_for_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, dense_parts = topics(300)
    assert nearest_neighbors(X, k=K, dense_parts=dense_parts).summary == {"search": "exact"}
    monkeypatch.setattr("snuh.graph.neighbors.APPROXIMATE_FROM_WITH_DENSE", 300)
    assert nearest_neighbors(X, k=K, dense_parts=dense_parts).summary == {
        "search": "approximate",
        "recall": 1.0,
    }
    assert nearest_neighbors(X, k=K).recall is None  # the limit is higher for sparse rows alone
    monkeypatch.setattr("snuh.graph.neighbors.APPROXIMATE_FROM", 300)
    assert nearest_neighbors(X, k=K).recall is not None


def test_an_unknown_search_is_refused() -> None:
    search: Search = "fast"  # type: ignore[assignment]
    with pytest.raises(InputError, match='search must be "auto", "exact" or "approximate", got "fast"'):
        nearest_neighbors(sparse.csr_matrix(some_rows(9)), k=2, search=search)


def test_recall_is_the_fraction_of_the_exact_neighbors() -> None:
    X, dense_parts = topics(200)
    exact = nearest_neighbors(X, k=K, dense_parts=dense_parts, search="exact")
    half = Neighbors(exact.rows.copy(), exact.similarity.copy())
    half.rows[:, K // 2 :], half.similarity[:, K // 2 :] = -1, 0
    sample = RecallSample(combine(X, dense_parts), k=K, rng=np.random.default_rng(0))
    assert sample.recall(exact) == 1.0
    assert sample.recall(half) == 0.5


@pytest.mark.parametrize(("target", "rounds"), [(0.5, 2), (1.1, 8)])
def test_rounds_continue_while_the_recall_is_below_the_target(
    target: float, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "snuh.graph.approximate.MIN_NEW_FRACTION", -1.0
    )  # never stop because a round found little
    monkeypatch.setattr("snuh.graph.approximate.TARGET_RECALL", target)
    done: list[object] = []

    def counted(*arguments: Any) -> TopK:
        done.append(arguments)
        return refine(*arguments)

    monkeypatch.setattr("snuh.graph.approximate.refine", counted)
    X, dense_parts = topics(200)
    nearest_neighbors(X, k=K, dense_parts=dense_parts, search="approximate")
    assert len(done) == rounds


@pytest.mark.usefixtures("small_steps")
def test_clusters_hold_each_document_once_and_none_is_large() -> None:
    dense = np.concatenate([topics()[1][0].rows, np.tile([[1.0] + [0.0] * 15], (500, 1))]).astype(np.float32)
    clusters = cluster_rows(dense, rng=np.random.default_rng(0))
    sizes = np.diff(clusters.offsets)
    assert sorted(clusters.order) == list(range(len(dense)))
    assert sizes.max() <= 100
    for cluster, nearest in enumerate(clusters.nearest):
        assert nearest[0] == cluster
        assert len(set(nearest)) == len(nearest)
        assert sizes[nearest].sum() >= 200


def test_truncated_postings_keep_the_heaviest_rows_and_of_equal_ones_the_lower(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("snuh.graph.approximate.MAX_POSTINGS", 2)
    X = sparse.csr_matrix(np.array([[0.1, 0.5], [0.3, 0.5], [0.2, 0.5]], dtype=np.float32))
    truncated = truncate_postings(X).toarray()
    np.testing.assert_allclose(truncated, [[0, 0.5], [0.3, 0.5], [0.2, 0]])
