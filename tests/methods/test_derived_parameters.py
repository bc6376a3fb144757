"""What parameters that are None come to, by the length of the codes and the number of documents."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from snuh.methods.itq import ITQ
from snuh.methods.lsa import fit_lsa
from snuh.methods.snuh import SNUH
from snuh.methods.snuh_plus import SNUHPlus
from snuh.methods.tree_estimator import TreeHasher
from snuh.metrics import precision_at_k
from tests.contract.test_methods import planted_topics


@pytest.mark.parametrize(
    ("docs", "epochs", "warmup_steps"),
    [
        (100_000, 12, 3 * 782),  # three epochs
        (11_016, 17, 3 * 87),
        (1_000, 150, 140),
        (300, 150, 140),
        (100, 200, 140),
        (40, 200, 100),  # a quarter of all
    ],
)
def test_few_documents_have_more_epochs_and_a_longer_warmup(
    docs: int, epochs: int, warmup_steps: int
) -> None:
    derived = SNUH(n_bits=64).derived_parameters(docs)
    assert derived["epochs"] == epochs
    assert derived["warmup"] * -(-docs // derived["batch_size"]) == pytest.approx(warmup_steps)


@pytest.mark.parametrize(
    ("docs", "neighbors", "batch"), [(100_000, 20, 128), (2_000, 20, 128), (1_000, 10, 100), (300, 5, 32)]
)
def test_few_documents_have_fewer_neighbours_and_smaller_batches(
    docs: int, neighbors: int, batch: int
) -> None:
    derived = SNUHPlus(n_bits=64).derived_parameters(docs)
    assert (derived["neighbors"], derived["batch_size"]) == (neighbors, batch)


def test_what_is_given_is_not_derived() -> None:
    chosen = SNUHPlus(n_bits=64, warmup=2.0, epochs=7, beta=0.3, neighbors=20, batch_size=128)
    assert chosen.derived_parameters(1_000).keys() == {"learning_rate", "word_dropout"}
    assert chosen.resolve("warmup", 1_000) == 2.0 and SNUHPlus(warmup=0.0).resolve("warmup", 1_000) == 0.0
    assert ITQ().derived_parameters(1_000) == {}


def test_values_between_lengths_lie_between_those_of_the_table() -> None:
    found = [SNUH(n_bits=bits).derived_parameters(10_000)["learning_rate"] for bits in (64, 96, 128)]
    assert found[0] > found[1] > found[2]


def test_without_lsa_the_graph_is_that_of_the_rows() -> None:
    X, _ = planted_topics(1)
    edges = {}
    methods: dict[str, TreeHasher] = {
        "joined": SNUHPlus(n_bits=16),
        "rows": SNUHPlus(n_bits=16, lsa_graph=False),
        "paper": SNUH(n_bits=16),
    }
    for name, method in methods.items():
        edges[name] = method.graph_parts(X, fit_lsa(X, dims=8, seed=0))
    assert [len(edges[name]) for name in ("joined", "rows", "paper")] == [1, 0, 0]


def test_codes_of_few_short_texts_know_their_topics() -> None:
    X, labels = short_texts()
    codes = SNUH(n_bits=64).fit(X).transform(X)
    assert precision_at_k(codes, labels, codes, labels, k=30) > 0.8  # chance is a quarter


def short_texts(
    docs: int = 300, topics: int = 4, own: int = 150, shared: int = 400
) -> tuple[sparse.csr_matrix, list[tuple[str, ...]]]:
    """Draw four words of a document's topic and four that all share; most of them are rare."""
    rng = np.random.default_rng(0)
    rows = np.zeros((docs, topics * own + shared), dtype=np.float32)
    for number in range(docs):
        for first, count in (((number % topics) * own, own), (topics * own, shared)):
            weights = 1 / np.arange(2, count + 2)
            rows[number, first + rng.choice(count, 4, p=weights / weights.sum())] = 1
    rows *= 1 + np.log(docs / np.maximum(rows.sum(axis=0), 1))
    return sparse.csr_matrix(rows), [(f"topic{number % topics}",) for number in range(docs)]


def test_training_on_few_documents_beats_its_start() -> None:
    X, labels = planted_topics(1)
    few, topics = X[:120], np.array([label for (label,) in labels[:120]])
    started, trained = (SNUH(n_bits=32, seed=0, **given).fit(few) for given in ({"epochs": 1}, {}))

    def agreement(method: SNUH) -> float:
        bits = np.unpackbits(method.transform(few), axis=1).astype(int)
        distances = (bits[:, None] != bits[None]).sum(2)
        same = np.equal.outer(topics, topics) & ~np.eye(120, dtype=bool)
        other = ~np.equal.outer(topics, topics)
        return float(distances[other].mean() - distances[same].mean())

    assert agreement(trained) > agreement(started) + 2
