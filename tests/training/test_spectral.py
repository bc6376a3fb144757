"""Spectral vectors against dense eigenvectors, and spectral bits of graphs whose parts are known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import eigh

from snuh.training.spectral import WEAK_LINK, spectral_bits, spectral_vectors
from tests.methods.test_contract import planted_topics


def random_graph(docs: int, seed: int = 0) -> sparse.csr_matrix:
    """A weighted graph of five loose groups, and three documents that have no neighbour at all."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 5, docs)
    near = rng.random((docs, docs)) < np.where(group[:, None] == group, 0.3, 0.02)
    dense = np.triu(near * rng.uniform(0.1, 0.9, (docs, docs)), 1)
    dense[:, :3] = dense[:3] = 0.0
    return sparse.csr_matrix((dense + dense.T).astype(np.float32))


def vectors_of(graph: sparse.csr_matrix, dims: int, seed: int = 0) -> np.ndarray:
    return spectral_vectors(graph, dims=dims, rng=np.random.default_rng(seed))


@pytest.mark.parametrize("docs", [25, 150])  # dense, and by the Lanczos method
def test_vectors_are_those_of_the_laplacian_with_weak_links(docs: int) -> None:
    graph, dims = random_graph(docs), 6
    weights = graph.toarray().astype(np.float64)
    weights += WEAK_LINK * weights.sum(axis=1).mean() / docs
    degrees = np.diag(weights.sum(axis=1))
    _, exact = eigh(degrees - weights, degrees)  # L y = lambda degrees y, by rising lambda
    found = vectors_of(graph, dims)
    # Up to sign and length.
    cosine = np.abs((found * exact[:, 1 : dims + 1]).sum(axis=0))
    cosine /= np.linalg.norm(found, axis=0) * np.linalg.norm(exact[:, 1 : dims + 1], axis=0)
    np.testing.assert_allclose(cosine, 1.0, atol=1e-6)
    np.testing.assert_allclose(np.diag(degrees) @ found, 0.0, atol=1e-8)  # the constant vector is left out


def test_a_graph_has_no_more_vectors_than_documents_but_one() -> None:
    assert vectors_of(random_graph(6), 16).shape == (6, 5)


def test_the_same_seed_gives_the_same_vectors() -> None:
    graph = random_graph(150)
    np.testing.assert_array_equal(vectors_of(graph, 6), vectors_of(graph, 6))


def test_a_pair_apart_from_all_others_does_not_get_the_first_vector() -> None:
    graph = random_graph(150).tolil()
    graph[0, 1] = graph[1, 0] = 0.05
    first = vectors_of(graph.tocsr(), 4)[:, 0]
    share = (first[:2] ** 2).sum() / (first**2).sum()
    assert share < 0.1  # without the weak links it is 1


def test_documents_without_any_neighbour_have_vectors_too() -> None:
    assert np.isfinite(vectors_of(sparse.csr_matrix((40, 40), dtype=np.float32), 4)).all()


def bits_of(X: sparse.csr_matrix, bits: int = 16) -> np.ndarray:
    return spectral_bits(X, bits=bits, neighbors=8, rng=np.random.default_rng(0))


def test_documents_of_one_topic_share_their_bits_and_half_of_all_have_each() -> None:
    X, labels = planted_topics(1)
    bits = bits_of(X, bits=8)
    assert bits.shape == (X.shape[0], 8)
    assert np.abs(bits.mean(axis=0) - 0.5).max() < 0.01
    topic = np.array([int(label[0]) for label in labels])
    differs = (bits[:, None] != bits[None]).mean(axis=2)
    same = topic[:, None] == topic
    assert differs[same].mean() < 0.7 * differs[~same].mean()


def test_copies_count_once_and_share_their_bits() -> None:
    X, _ = planted_topics(1, docs=100)
    copied = sparse.vstack([X[:30], X[7], X[30:], X[7], X[50]]).tocsr()
    bits = bits_of(copied)
    np.testing.assert_array_equal(np.delete(bits, [30, 101, 102], axis=0), bits_of(X))
    np.testing.assert_array_equal(bits[[30, 101, 102]], bits_of(X)[[7, 7, 50]])


def test_few_documents_still_make_all_bits() -> None:
    X, _ = planted_topics(1, docs=10)
    bits = bits_of(X, bits=64)
    assert bits.shape == (10, 64)
    assert len(np.unique(bits, axis=0)) == 10
    np.testing.assert_array_equal(bits.sum(axis=0), 5)
