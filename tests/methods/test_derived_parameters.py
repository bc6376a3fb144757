"""What parameters that are None come to, by the length of the codes and the number of documents."""

from __future__ import annotations

import numpy as np
import pytest

from snuh.methods.itq import ITQ
from snuh.methods.lsa import fit_lsa
from snuh.methods.snuh import SNUH
from snuh.methods.snuh_plus import SNUHPlus
from snuh.methods.tree_estimator import TreeHasher
from tests.contract.test_methods import planted_topics


@pytest.mark.parametrize(
    ("docs", "epochs", "warmup_steps"),
    [
        (100_000, 12, 3 * 782),  # three epochs
        (11_016, 17, 3 * 87),
        (1_000, 188, 140),
        (300, 200, 140),
        (100, 200, 50),  # a quarter of all
    ],
)
def test_few_documents_have_more_epochs_and_a_longer_warmup(
    docs: int, epochs: int, warmup_steps: int
) -> None:
    derived = SNUH(n_bits=64).derived_parameters(docs)
    assert derived["epochs"] == epochs
    assert derived["warmup"] * -(-docs // 128) == pytest.approx(warmup_steps)


def test_what_is_given_is_not_derived() -> None:
    chosen = SNUHPlus(n_bits=64, warmup=2.0, epochs=7, beta=0.3)
    assert chosen.derived_parameters(1_000).keys() == {"learning_rate", "word_dropout"}
    assert chosen._warmup(1_000, 7) == 2.0 and SNUHPlus(warmup=0.0)._warmup(1_000, 7) == 0.0
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
