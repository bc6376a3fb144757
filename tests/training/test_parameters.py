"""Defaults of parameters left as None, by the length of the codes and the number of documents."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from snuh.methods.itq import ITQ
from snuh.methods.snuh import SNUH
from snuh.methods.snuh_plus import SNUHPlus
from snuh.metrics import precision_at_k
from snuh.training.gradient import MAX_EPOCHS, MIN_EPOCHS
from snuh.training.spectral import fit_lsa
from snuh.training.tree_estimator import TreeHasher
from tests.methods.test_contract import planted_topics

SIZES = [40, 100, 300, 1_000, 2_000, 11_016, 100_000]


@pytest.mark.parametrize("docs", SIZES)
def test_epochs_make_the_default_number_of_steps_within_bounds(docs: int) -> None:
    derived = SNUH(n_bits=64).derived_parameters(docs)
    steps = -(-docs // derived["batch_size"])
    epochs = derived["epochs"]
    if MIN_EPOCHS < epochs < MAX_EPOCHS:
        assert abs(epochs * steps - SNUH.default_steps) <= steps / 2
    elif epochs == MIN_EPOCHS:
        assert epochs * steps > SNUH.default_steps
    else:
        assert epochs == MAX_EPOCHS and epochs * steps < SNUH.default_steps


def test_small_corpora_have_a_longer_warmup_but_never_most_of_the_training() -> None:
    derived = [SNUH(n_bits=64).derived_parameters(docs) for docs in SIZES]
    warmups = [values["warmup"] for values in derived]
    assert warmups == sorted(warmups, reverse=True) and warmups[0] > warmups[-1]
    assert all(values["warmup"] <= values["epochs"] / 4 for values in derived)


def test_neighbors_and_batches_grow_with_the_corpus_up_to_a_maximum() -> None:
    derived = [SNUH(n_bits=64).derived_parameters(docs) for docs in SIZES]
    for name in ("neighbors", "batch_size"):
        values = [one[name] for one in derived]
        assert values == sorted(values) and values[0] < values[-1] == values[-2] == values[-3]
        assert all(value < docs for value, docs in zip(values, SIZES, strict=True))


def test_what_is_given_is_not_derived() -> None:
    chosen = SNUHPlus(n_bits=64, warmup=2.0, epochs=7, beta=0.3, neighbors=20, batch_size=128)
    assert chosen.derived_parameters(1_000).keys() == {"learning_rate", "word_dropout"}
    assert chosen.resolve("warmup", 1_000) == 2.0 and SNUHPlus(warmup=0.0).resolve("warmup", 1_000) == 0.0
    assert ITQ().derived_parameters(1_000) == {}


def rows_of(words: int) -> sparse.csr_matrix:
    return sparse.csr_matrix(np.vstack([np.ones((6, words)), np.zeros((2, words))]).astype(np.float32))


def test_snuh_plus_trains_more_slowly_on_short_documents() -> None:
    factors = [SNUHPlus().rate_factor(rows_of(words)) for words in (5, 20, 80, 300)]
    assert factors == pytest.approx([0.5, 2**-0.5, 1.0, 1.0], rel=1e-6)
    assert SNUH().rate_factor(rows_of(5)) == 1.0


def test_the_factor_of_the_learning_rate_reaches_the_steps() -> None:
    class Slow(SNUHPlus):
        def rate_factor(self, X: sparse.csr_matrix) -> float:
            return 1e-6

    X = planted_topics(1)[0][:120]
    start = SNUHPlus(n_bits=16, epochs=1, learning_rate=1e-9).fit(X).transform(X)
    assert (Slow(n_bits=16, epochs=1, learning_rate=1.0).fit(X).transform(X) == start).mean() > 0.99


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
