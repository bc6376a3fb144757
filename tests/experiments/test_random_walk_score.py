"""What short walks reach, and the score that asks for it, spelled out."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import sparse

from snuh.encoder import Encoder, Layer
from snuh.experiments.scores import RandomWalkScore, random_walk
from snuh.graph import DensePart, nearest_neighbors
from snuh.training.spectral import fit_lsa
from snuh.training.validation_score import similarity, split_words, top_k_probability
from tests.training.test_validation_score import random_rows


def test_walks_end_where_all_their_ways_lead() -> None:
    graph = sparse.csr_matrix(np.array([[0, 0.5, 0.2, 0], [0.5, 0, 0, 0], [0.2, 0, 0, 0.9], [0, 0, 0.9, 0]]))
    start = np.array([[0.75, 0, 0.25, 0], [0, 0, 0, 1]], dtype=np.float32)
    near = [np.flatnonzero(row) for row in graph.toarray()]
    ends = np.zeros((2, 4))
    for walk, first in product(range(2), range(4)):
        for second in near[first]:
            for third in near[second]:
                ends[walk, third] += start[walk, first] / len(near[first]) / len(near[second])
    assert random_walk(graph, start, steps=2) == pytest.approx(ends)
    assert random_walk(graph, start, steps=0) == pytest.approx(start)


def test_a_walk_without_a_way_ends_nowhere() -> None:
    graph = sparse.csr_matrix(np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]))
    assert random_walk(graph, np.eye(3, dtype=np.float32), steps=1).sum(1).tolist() == [1, 1, 0]


def test_score_is_the_share_of_what_walks_from_the_second_half_reach() -> None:
    X, held = random_rows(300, 40, seed=6), random_rows(50, 40, seed=7)
    weight = np.random.default_rng(8).normal(size=(40, 16)).astype(np.float32)
    encoder = Encoder((Layer(weight, np.zeros(16, np.float32)),), np.zeros(16, np.float32))

    lsa = fit_lsa(X, dims=128, seed=4)
    first, second = split_words(held, np.random.default_rng(4))  # nothing was drawn before: both are small
    graph = nearest_neighbors(X, k=5, dense_parts=[DensePart(lsa.unit_values(X), 0.5)]).adjacency()
    nearest = top_k_probability(-similarity(second, X, lsa), 5) / np.float32(5)
    wanted = top_k_probability(-random_walk(graph, nearest, steps=2), 90)
    bits = [np.unpackbits(encoder.encode(rows), axis=1) for rows in (first, X)]
    found = top_k_probability((bits[0][:, None] != bits[1][None]).sum(2), 30)  # a tenth of the documents
    assert RandomWalkScore(X, held, seed=4)(encoder).value == pytest.approx((found * wanted).sum() / 30 / 50)
