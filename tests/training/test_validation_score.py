"""The score without labels: ties, halves of documents, and the score itself, spelled out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from snuh.encoder import Encoder, Layer
from snuh.features import check_matrix, unit_rows
from snuh.training.spectral import fit_lsa
from snuh.training.validation_score import (
    HeldOutScore,
    sample_rows,
    similarity,
    split_words,
    top_k_probability,
)


def random_rows(docs: int, terms: int, seed: int) -> sparse.csr_matrix:
    rng = np.random.default_rng(seed)
    dense = rng.random((docs, terms)) * (rng.random((docs, terms)) < 0.4)
    return unit_rows(check_matrix(dense))


def test_share_is_the_mean_over_random_orders_of_ties() -> None:
    rng = np.random.default_rng(0)
    distances = rng.integers(0, 4, size=(3, 12))
    rounds = 4_000
    counted = np.zeros(distances.shape)
    for _ in range(rounds):
        order = np.lexsort((rng.random(distances.shape), distances))
        np.put_along_axis(counted, order[:, :5], np.take_along_axis(counted, order[:, :5], 1) + 1, 1)
    share = top_k_probability(distances, 5)
    assert np.allclose(share.sum(1), 5)
    assert np.abs(counted / rounds - share).max() < 5 * np.sqrt(0.25 / rounds)


def test_halves_share_no_word_and_make_up_the_document() -> None:
    X = random_rows(30, 25, seed=2)
    X = sparse.vstack([X, sparse.csr_matrix(([1.0], ([0], [3])), shape=(1, 25))]).tocsr()  # one word
    first, second = split_words(X, np.random.default_rng(0))
    assert first.shape == second.shape == X.shape
    assert first.multiply(second).nnz == 1  # the document of one word has it in both
    assert ((first + second) != 0).toarray().tolist() == (X != 0).toarray().tolist()
    assert np.abs(np.diff(first.indptr) - np.diff(second.indptr)).max() <= 1
    assert np.allclose(np.sqrt(first.power(2).sum(1)), 1)


def test_an_empty_document_has_empty_halves() -> None:
    X = sparse.csr_matrix(np.array([[0.0, 0.0], [0.6, 0.8]]))
    first, second = split_words(X, np.random.default_rng(0))
    assert first[0].nnz == second[0].nnz == 0
    assert first[1].nnz == second[1].nnz == 1


def test_score_is_the_share_of_the_second_halfs_neighbours_that_the_first_halfs_code_finds() -> None:
    X, held = random_rows(300, 40, seed=6), random_rows(50, 40, seed=7)
    rng = np.random.default_rng(8)
    weight = rng.normal(size=(40, 16)).astype(np.float32)
    encoder = Encoder((Layer(weight, np.zeros(16, np.float32)),), np.zeros(16, np.float32))
    lsa = fit_lsa(X, dims=8, seed=0)
    score = HeldOutScore(X, held, lsa, rng=np.random.default_rng(9))(encoder)

    first, second = split_words(held, np.random.default_rng(9))  # nothing was drawn before: both are small
    codes, queries = (np.unpackbits(encoder.encode(rows), axis=1) for rows in (X, first))
    expected = []
    for query, words in zip(queries, second.toarray(), strict=True):
        latent = words @ lsa.directions
        all_latent = X.toarray() @ lsa.directions
        cosine = all_latent @ latent / np.linalg.norm(all_latent, axis=1) / np.linalg.norm(latent)
        wanted = np.argsort(-(X.toarray() @ words + cosine))[:90]  # three for each that is retrieved
        distances = (codes != query).sum(1)
        cut = np.sort(distances)[29]  # a tenth of the documents
        closer, tied = distances < cut, distances == cut
        found = closer + tied * (30 - closer.sum()) / tied.sum()
        expected.append(found[wanted].sum() / 30)
    assert score.value == pytest.approx(np.mean(expected), rel=1e-5)
    assert score.alive


def test_similarity_is_the_mean_of_both_cosines() -> None:
    X, queries = random_rows(20, 12, seed=1), random_rows(5, 12, seed=2)
    lsa = fit_lsa(X, dims=4, seed=0)
    latent = lsa.unit_values(queries) @ lsa.unit_values(X).T
    assert np.allclose(similarity(queries, X, lsa), ((queries @ X.T).toarray() + latent) / 2, atol=1e-6)


def test_a_sample_keeps_the_order() -> None:
    X = sparse.csr_matrix(np.arange(1.0, 51.0)[:, None])
    drawn = sample_rows(X, 10, np.random.default_rng(0)).toarray().ravel()
    assert len(drawn) == 10 and (np.diff(drawn) > 0).all()
    assert sample_rows(X, 50, np.random.default_rng(0)) is X
