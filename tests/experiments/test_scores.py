"""Scores without labels: each against its definition, spelled out document by document."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from snuh.encoder import Encoder, Layer
from snuh.experiments.corpora import Corpus
from snuh.experiments.scores import CANDIDATES, CandidateScores, RandomWalkScore, information_gain
from snuh.features import check_matrix, unit_rows
from snuh.methods import make
from snuh.training.spectral import fit_lsa
from snuh.training.validation_score import HeldOutScore, top_k_probability


def random_rows(docs: int, terms: int, seed: int) -> sparse.csr_matrix:
    rng = np.random.default_rng(seed)
    dense = rng.random((docs, terms)) * (rng.random((docs, terms)) < 0.4)
    return unit_rows(check_matrix(dense))


def random_encoder(terms: int, bits: int) -> Encoder:
    rng = np.random.default_rng(1)
    layer = Layer(rng.normal(size=(terms, bits)).astype(np.float32), np.zeros(bits, np.float32), "identity")
    return Encoder((layer,), np.zeros(bits, np.float32))


def test_information_gain_is_what_neighbours_know_more_than_the_corpus() -> None:
    database, queries = random_rows(20, 12, seed=3), random_rows(6, 12, seed=4)
    share = np.random.default_rng(5).random((6, 20)).astype(np.float32)
    words = database.toarray() / database.toarray().sum(1, keepdims=True)
    corpus = words.mean(0)
    gains = []
    for row, query in zip(share, queries.toarray(), strict=True):
        near = row / row.sum() @ words
        mixed = 0.5 * near + 0.5 * corpus
        gains.append(
            sum(q / query.sum() * np.log(m / c) for q, m, c in zip(query, mixed, corpus, strict=True))
        )
    assert information_gain(share, database, queries) == pytest.approx(np.mean(gains), rel=1e-5)


def test_a_word_that_no_training_document_has_counts_for_nothing() -> None:
    database = sparse.csr_matrix(np.array([[1.0, 0, 0], [0, 1.0, 0]]))
    queries = sparse.csr_matrix(np.array([[0, 0, 1.0]]))
    assert information_gain(np.ones((1, 2), np.float32), database, queries) == 0


def test_scores_equal_their_definitions() -> None:
    database, queries = random_rows(200, 30, seed=6), random_rows(40, 30, seed=7)
    encoder = random_encoder(30, 16)
    scores = CandidateScores(database, queries)(encoder)
    bits = [np.unpackbits(encoder.encode(X), axis=1) for X in (queries, database)]
    share = top_k_probability((bits[0][:, None] != bits[1][None]).sum(2), 20)  # a tenth of the documents
    lsa = fit_lsa(database, dims=128, seed=0)
    words = (queries @ database.T).toarray()
    latent = lsa.unit_values(queries) @ lsa.unit_values(database).T
    assert tuple(scores) == CANDIDATES
    assert scores["words"] == pytest.approx((share * words).sum() / 20 / 40, rel=1e-4)
    assert scores["lsa"] == pytest.approx((share * latent).sum() / 20 / 40, rel=1e-4)
    nearest = np.argsort(-(words + latent), axis=1)[:, :20]
    overlap = np.take_along_axis(share, nearest, 1).sum() / 20 / 40
    assert scores["overlap"] == pytest.approx(overlap, rel=1e-4)


def test_unseen_is_the_score_that_chooses_the_epoch(toy: Corpus) -> None:
    train, val = (unit_rows(check_matrix(toy.splits[name].X)) for name in ("train", "val"))
    encoder = make("itq", bits=16, seed=0, parameters={}).fit(train).encoder_
    held_out = HeldOutScore(train, val, fit_lsa(train, dims=128, seed=0), rng=np.random.default_rng(0))
    assert CandidateScores(train, val)(encoder)["unseen"] == pytest.approx(held_out(encoder).value, rel=1e-4)


def test_reach_is_the_score_that_chooses_settings(toy: Corpus) -> None:
    train, val = (toy.splits[name].X for name in ("train", "val"))
    encoder = make("itq", bits=16, seed=0, parameters={}).fit(train).encoder_
    assert CandidateScores(train, val)(encoder)["reach"] == RandomWalkScore(train, val)(encoder).value


def test_codes_that_know_topics_score_better_than_random_ones(toy: Corpus) -> None:
    train = toy.splits["train"].X
    good = make("itq", bits=16, seed=0, parameters={}).fit(train).encoder_
    scores = toy.candidates(good), toy.candidates(random_encoder(train.shape[1], 16))
    assert all(scores[0][name] > scores[1][name] for name in CANDIDATES), scores
