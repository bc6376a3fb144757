from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from snuh.errors import InputError
from snuh.graph import DensePart, Neighbors, find_unique_rows, gaussian_affinity, nearest_neighbors


def unit(dense: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(dense, axis=1, keepdims=True)
    return (dense / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def some_rows(docs: int, terms: int = 40, seed: int = 0, density: float = 0.15) -> np.ndarray:
    return unit(sparse.random(docs, terms, density=density, random_state=seed).toarray())


def brute_force(cosine: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    cosine = cosine.copy()
    np.fill_diagonal(cosine, -1)
    order = np.argsort(-cosine, axis=1, kind="stable")[:, :k]
    best = np.take_along_axis(cosine, order, axis=1)
    return np.where(best > 0, order, -1), np.where(best > 0, best, 0)


@settings(max_examples=25, deadline=None)
@given(docs=st.integers(2, 60), k=st.integers(1, 12), seed=st.integers(0, 10_000))
def test_neighbors_equal_brute_force(docs: int, k: int, seed: int) -> None:
    rows = some_rows(docs, seed=seed)
    distinct = np.unique(rows, axis=0)
    if len(distinct) < docs:
        return  # duplicates are covered by another test
    found = nearest_neighbors(sparse.csr_matrix(rows), k=k)
    _, best = brute_force(rows @ rows.T, k)
    np.testing.assert_allclose(found.similarity[:, : best.shape[1]], best, atol=1e-5)


def test_hybrid_similarity_is_the_mean_of_both_cosines() -> None:
    rows, dense = some_rows(50), unit(np.random.default_rng(1).standard_normal((50, 5)))
    found = nearest_neighbors(sparse.csr_matrix(rows), k=4, dense_parts=[DensePart(dense, 0.5)])
    hybrid = (rows @ rows.T + dense @ dense.T) / 2
    expected, best = brute_force(hybrid, 4)
    np.testing.assert_allclose(found.similarity, best, atol=1e-5)
    assert (found.rows == expected).mean() > 0.99  # near-ties may be ordered either way


def test_weights_of_three_parts_add_up_to_one_cosine() -> None:
    rows = some_rows(40, density=0.4)
    rng = np.random.default_rng(1)
    first, second = unit(rng.standard_normal((40, 5))), unit(rng.standard_normal((40, 3)))
    parts = [DensePart(first, 0.25), DensePart(second, 0.5)]
    found = nearest_neighbors(sparse.csr_matrix(rows), k=4, dense_parts=parts)
    hybrid = 0.25 * rows @ rows.T + 0.25 * first @ first.T + 0.5 * second @ second.T
    np.testing.assert_allclose(found.similarity, brute_force(hybrid, 4)[1], atol=1e-5)


def test_dense_rows_give_the_same_graph_as_brute_force() -> None:
    rows = unit(np.random.default_rng(2).standard_normal((40, 12)))
    found = nearest_neighbors(sparse.csr_matrix(rows), k=5)
    np.testing.assert_allclose(found.similarity, brute_force(rows @ rows.T, 5)[1], atol=1e-5)


def test_the_block_size_does_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    X = sparse.csr_matrix(some_rows(70))
    whole = nearest_neighbors(X, k=6)
    monkeypatch.setattr("snuh.graph.neighbors.BLOCK_BYTES", 4 * 70 * 3)
    fractions: list[float] = []
    in_blocks = nearest_neighbors(X, k=6, on_progress=fractions.append)
    np.testing.assert_array_equal(whole.rows, in_blocks.rows)
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0
    assert len(fractions) > 10


def test_duplicates_do_not_displace_real_neighbors() -> None:
    rows = some_rows(30, density=0.4)
    copies = np.concatenate([rows, np.repeat(rows[:1], 10, axis=0)])
    found = nearest_neighbors(sparse.csr_matrix(copies), k=3)
    np.testing.assert_array_equal(found.rows[0], nearest_neighbors(sparse.csr_matrix(rows), k=3).rows[0])
    assert found.rows[30:, 0].tolist() == [0, *range(30, 39)]  # each duplicate lists the one before it
    assert (found.similarity[30:, 0] == 1).all()
    assert (found.rows[30:, 1:] == -1).all()
    assert not (found.rows == np.arange(40)[:, None]).any()


def test_an_empty_document_neither_has_neighbors_nor_is_one() -> None:
    rows = some_rows(20, density=0.5)
    rows[7] = 0
    found = nearest_neighbors(
        sparse.csr_matrix(rows), k=5, dense_parts=[DensePart(unit(np.ones((20, 2))), 0.5)]
    )
    assert (found.rows[7] == -1).all()
    assert not (found.rows == 7).any()


def test_fewer_documents_than_k_leave_slots_empty() -> None:
    found = nearest_neighbors(sparse.csr_matrix(unit(np.ones((3, 2)) + np.eye(3, 2))), k=5)
    assert ((found.rows >= 0).sum(axis=1) == 2).all()


def test_adjacency_is_symmetric_and_has_no_loops() -> None:
    graph = nearest_neighbors(sparse.csr_matrix(some_rows(50, density=0.3)), k=4).adjacency()
    assert abs(graph - graph.T).max() == 0
    assert graph.diagonal().max() == 0


def test_an_edge_needs_one_of_its_documents_to_list_the_other() -> None:
    listed = Neighbors(np.array([[1], [2], [1]], dtype=np.int32), np.array([[0.5], [0.9], [0.9]], np.float32))
    expected = np.array([[0, 0.5, 0], [0.5, 0, 0.9], [0, 0.9, 0]])
    np.testing.assert_allclose(listed.adjacency().toarray(), expected, rtol=1e-6)


def test_ties_go_to_the_lower_row() -> None:
    rows = unit(np.array([[1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 1], [0, 0, 0, 1]], dtype=np.float32))
    found = nearest_neighbors(sparse.csr_matrix(rows), k=2)
    assert found.rows[3].tolist() == [0, 1]
    assert found.rows[2].tolist() == [3, 0]


def test_rows_that_differ_in_the_fourth_decimal_are_not_copies() -> None:
    rows = unit(np.array([[1.0, 1.0], [1.0, 1.0005], [1.0, 1.0]]))
    unique = find_unique_rows(sparse.csr_matrix(rows))
    assert unique.first.tolist() == [0, 1]
    assert unique.previous.tolist() == [-1, -1, 0]


def test_gaussian_affinity_is_equation_5() -> None:
    rows = some_rows(2, density=0.5)
    cosine = np.float32(rows[0] @ rows[1])
    expected = np.exp(-np.sum((rows[0] - rows[1]) ** 2) / 0.7)
    assert gaussian_affinity(np.array([cosine]), sigma=0.7)[0] == pytest.approx(expected, rel=1e-5)


def test_zero_neighbors_are_refused() -> None:
    with pytest.raises(InputError, match="neighbors must be at least 1, got 0"):
        nearest_neighbors(sparse.csr_matrix(some_rows(3)), k=0)
