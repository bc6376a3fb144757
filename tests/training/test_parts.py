"""The parts that network methods are made of, each against plain dense arithmetic or a world it must find."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import Tensor

from snuh.encoder import Encoder, Layer
from snuh.methods.rbsh import RBSH, ranking_loss
from snuh.training.gradient import Start, linear_schedule, linear_warmup
from snuh.training.layers import WordDecoder, draw_bits, sparse_linear, word_sets
from snuh.training.network import Network, weak_neighbors
from snuh.training.spectral import distinct_rows, medians
from tests.training.differences import assert_gradient_is_right

DOCS, TERMS, BITS = 60, 40, 8
STANDARD_ERRORS = 5.0  # probability of a false alarm below one in a million per comparison


def some_rows(seed: int = 0, docs: int = DOCS) -> sparse.csr_matrix:
    rng = np.random.default_rng(seed)
    dense = rng.random((docs, TERMS)) * (rng.random((docs, TERMS)) < 0.2)
    dense[np.arange(docs), rng.integers(0, TERMS, docs)] = 1.0  # no row is empty
    return sparse.csr_matrix((dense / np.linalg.norm(dense, axis=1, keepdims=True)).astype(np.float32))


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


# Weights that change


def test_weights_rise_and_fall_over_the_epochs_and_then_stay() -> None:
    assert [linear_warmup(epoch, 4.0) for epoch in (0.0, 1.0, 4.0, 9.0)] == [0.0, 0.25, 1.0, 1.0]
    assert linear_warmup(0.0, 0.0) == 1.0
    values = [linear_schedule(epoch, 10.0, start=1.0, end=0.2) for epoch in (0.0, 5.0, 10.0, 20.0)]
    assert values == pytest.approx([1.0, 0.6, 0.2, 0.2])


# Bits


def test_drawn_bits_are_zeros_and_ones_with_their_probabilities_as_means() -> None:
    probability = torch.tensor([0.0, 0.1, 0.5, 0.93, 1.0])
    bits = draw_bits(probability.expand(100_000, 5), generator())
    assert set(bits.unique().tolist()) == {0.0, 1.0}
    error = torch.sqrt(probability * (1 - probability) / len(bits))
    assert ((bits.mean(dim=0) - probability).abs() <= STANDARD_ERRORS * error).all()


def test_the_gradient_by_bits_is_passed_on_unchanged() -> None:
    probability = torch.rand((6, 4), generator=generator()).requires_grad_()
    weights = torch.randn((6, 4), generator=generator(1))
    (draw_bits(probability, generator()) * weights).sum().backward()
    assert torch.equal(probability.grad, weights)


# The sparse layer


def test_a_scaled_sparse_layer_equals_the_dense_one() -> None:
    rows = some_rows()
    scale = torch.rand(TERMS, generator=generator())
    weight = torch.randn((TERMS, 5), generator=generator(1))
    by_product = torch.randn((DOCS, 5), generator=generator(2))
    results = []
    for layer in (
        lambda w, s: sparse_linear(rows, w, scale=s, gradient=torch.empty_like(w)),
        lambda w, s: (torch.from_numpy(rows.toarray()) * s) @ w,
    ):
        w, s = weight.clone().requires_grad_(), scale.clone().requires_grad_()
        product = layer(w, s)
        product.backward(by_product)
        results.append((product.detach(), w.grad, s.grad))
    for approximate, dense in zip(*results, strict=True):
        torch.testing.assert_close(approximate, dense, rtol=1e-5, atol=1e-5)


def test_the_gradients_of_a_scaled_sparse_layer_agree_with_finite_differences() -> None:
    rows = some_rows(docs=6).astype(np.float64)
    scale = torch.rand(TERMS, dtype=torch.float64, generator=generator())
    weight = torch.randn((TERMS, 3), dtype=torch.float64, generator=generator(1))
    assert_gradient_is_right(lambda w: sparse_linear(rows, w, scale=scale), weight)
    assert_gradient_is_right(lambda s: sparse_linear(rows, weight.clone(), scale=s), scale)


# The network


def network(dropout: float = 0.0, importance: Tensor | None = None, **changes: int) -> Network:
    sizes = {"hidden": 6, "depth": 2, **changes}
    return Network(
        TERMS,
        **sizes,
        heads={"code": BITS, "spread": 3},
        dropout=dropout,
        generator=generator(),
        importance=importance,
    )


def dense_forward(model: Network, rows: sparse.csr_matrix) -> Tensor:
    values = torch.from_numpy(rows.toarray())
    if model.importance is not None:
        values = values * model.importance
    for weight, bias in zip(model.weights[:-1], model.biases[:-1], strict=True):
        values = torch.relu(values @ weight + bias)
    return values @ model.weights[-1] + model.biases[-1]


def drawn_importance() -> Tensor:
    return (torch.rand(TERMS, generator=generator(4)) + 0.5).requires_grad_()


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_heads_are_the_parts_of_a_dense_network_in_values_and_gradients(depth: int) -> None:
    importance = drawn_importance()
    model = network(depth=depth, importance=importance)
    for bias in model.biases:
        bias.data.uniform_(-0.2, 0.2, generator=generator(5))
    rows = some_rows()
    weights = torch.randn((DOCS, BITS + 3), generator=generator(6))
    gradients = []
    for forward in (lambda: torch.cat(list(model(rows).values()), dim=1), lambda: dense_forward(model, rows)):
        values = forward()
        (values * weights).sum().backward()
        gradients.append((values.detach(), *[p.grad.clone() for p in (*model.parameters, importance)]))
        for parameter in (*model.parameters, importance):
            parameter.grad = None
    assert {name: tuple(head.shape) for name, head in model(rows).items()} == {
        "code": (DOCS, BITS),
        "spread": (DOCS, 3),
    }
    for approximate, dense in zip(*gradients, strict=True):
        torch.testing.assert_close(approximate, dense, rtol=1e-4, atol=1e-5)


def test_dropout_silences_its_share_of_units_and_keeps_the_mean() -> None:
    model, rows = network(dropout=0.3, depth=1), some_rows(docs=4)
    draws = 4_000
    with torch.no_grad():
        many = torch.cat(list(model(sparse.vstack([rows] * draws).tocsr()).values()), dim=1)
        expected = dense_forward(model, rows)
        hidden = torch.relu(
            torch.from_numpy(rows.toarray()) @ model.weights[0] + model.biases[0]
        )  # (documents, units)
    many = many.reshape(draws, 4, -1)
    error = many.std(dim=0) / draws**0.5
    assert ((many.mean(dim=0) - expected).abs() < STANDARD_ERRORS * error + 1e-6).all()
    # Each unit h is 0, or h / (1 - share): its variance is h^2 share / (1 - share).
    variance = hidden.square() @ model.weights[1].detach().square() * 0.3 / 0.7
    torch.testing.assert_close(many.var(dim=0), variance, rtol=0.15, atol=1e-6)


@pytest.mark.parametrize("depth", [0, 2])
def test_the_encoder_is_the_first_head_without_dropout_with_importance_folded_in(depth: int) -> None:
    model, rows = network(dropout=0.5, depth=depth, importance=drawn_importance()), some_rows()
    for bias in model.biases:
        bias.data.uniform_(-0.2, 0.2, generator=generator(5))
    expected = dense_forward(model, rows)[:, :BITS].detach()
    for activation, values in (("identity", expected), ("sigmoid", torch.sigmoid(expected))):
        encoder = model.encoder(activation)
        np.testing.assert_allclose(encoder.values(rows), values.numpy(), atol=1e-5)
    before = encoder.values(rows)
    with torch.no_grad():
        for parameter in model.parameters:
            parameter.add_(1.0)
    np.testing.assert_array_equal(encoder.values(rows), before)  # arrays of its own


@pytest.mark.parametrize("depth", [0, 1])
@pytest.mark.parametrize("spread", [None, 0.3])
def test_balanced_codes_have_their_median_at_zero(depth: int, spread: float | None) -> None:
    model, rows = network(depth=depth), some_rows(docs=100)
    before = model.encoder("identity").values(rows)
    others = model(rows)["spread"].detach()
    assert (np.abs(np.median(before, axis=0)) > 1e-3 * before.std(axis=0)).any()
    model.balance(rows, spread=spread)
    values = model.encoder("identity").values(rows)
    np.testing.assert_allclose(np.median(values, axis=0), 0.0, atol=1e-6)
    torch.testing.assert_close(model(rows)["spread"].detach(), others)


def test_balanced_codes_have_the_spread_asked_for_behind_hidden_layers_only() -> None:
    rows = some_rows(docs=100)

    def spreads(depth: int, spread: float | None) -> tuple[np.ndarray, np.ndarray]:
        model = network(depth=depth)
        before = model.encoder("identity").values(rows).std(axis=0)
        model.balance(rows, spread=spread)
        return before, model.encoder("identity").values(rows).std(axis=0)

    np.testing.assert_allclose(spreads(2, 0.3)[1], 0.3, rtol=1e-4)
    for depth, spread in ((2, None), (0, 0.3)):
        before, after = spreads(depth, spread)
        np.testing.assert_allclose(after, before, rtol=1e-3)


# The word decoder


def decoder(dims: int = 5, init_range: float = 0.5) -> WordDecoder:
    return WordDecoder(some_rows(), dims, documents=DOCS, init_range=init_range, generator=generator(3))


@pytest.mark.parametrize("with_importance", [False, True])
def test_words_are_scored_by_a_softmax_over_the_vocabulary(with_importance: bool) -> None:
    model, rows = decoder(), some_rows(seed=8, docs=20)
    importance = drawn_importance()
    z = torch.randn((20, 5), generator=generator(7)).requires_grad_()
    leaves = [z, *model.parameters, *([importance] if with_importance else [])]
    present = torch.from_numpy(rows.toarray() > 0)

    def dense() -> Tensor:
        embedding = model.embedding * importance[:, None] if with_importance else model.embedding
        logits = z @ embedding.t() + model.bias
        return torch.where(present, logits.log_softmax(dim=1), 0.0).sum(dim=1)

    def approximate() -> Tensor:
        given = model.embedding * importance[:, None] if with_importance else None
        return model.log_likelihood(z, word_sets(rows), embedding=given)

    results = []
    for score in (approximate, dense):
        values = score()
        (values * torch.arange(20)).sum().backward()
        results.append((values.detach(), *[leaf.grad.clone() for leaf in leaves]))
        for leaf in leaves:
            leaf.grad = None
    for got, expected in zip(*results, strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-3)


def test_without_a_code_words_start_as_likely_as_they_are_in_the_corpus() -> None:
    rows, model = some_rows(), decoder(init_range=0.0)
    z = torch.randn((DOCS, 5), generator=generator())
    counts = (rows.toarray() > 0).sum(axis=0) + 1.0
    log_share = np.log(counts / counts.sum())
    expected = (rows.toarray() > 0) @ log_share
    got = model.log_likelihood(z, word_sets(rows)).detach().numpy()
    np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_the_array_of_a_decoder_is_its_own() -> None:
    model = decoder()
    array = model.array()
    assert array.shape == (TERMS, 5)
    array += 1.0
    np.testing.assert_allclose(array - 1.0, model.embedding.detach().numpy(), atol=1e-6)


# Thresholds


def identity_encoder() -> Encoder:
    return Encoder(
        (Layer(np.eye(8, dtype=np.float32), np.zeros(8, dtype=np.float32), "identity"),),
        np.zeros(8, dtype=np.float32),
    )


def test_thresholds_have_half_of_the_rows_above_and_none_at_them() -> None:
    values = np.random.default_rng(0).random((10, 8)).astype(np.float32)
    threshold = medians(identity_encoder().values(sparse.csr_matrix(values)))
    assert ((values > threshold).sum(axis=0) == 5).all()
    assert not (values == threshold).any()


def test_the_threshold_of_an_odd_number_of_rows_is_not_one_of_their_values() -> None:
    values = np.random.default_rng(0).permutation(11)[:, None] * np.ones(8, dtype=np.float32) + 1
    assert medians(identity_encoder().values(sparse.csr_matrix(values))).tolist() == [6.5] * 8
    one = sparse.csr_matrix(values[:1])
    np.testing.assert_array_equal(medians(identity_encoder().values(one)), values[0])


def test_copies_of_a_row_count_once() -> None:
    rows = some_rows(docs=5)
    copied = rows[[0, 1, 0, 2, 0, 3, 4, 4]]
    np.testing.assert_array_equal(distinct_rows(copied).toarray(), rows[[0, 1, 2, 3, 4]].toarray())
    assert distinct_rows(rows) is rows


# Weak neighbours


def start_of(X: sparse.csr_matrix) -> Start:
    data = RBSH().training_data(X, X[:10])
    return Start(data, np.random.default_rng(0), generator(), None)


def grouped_rows(groups: int = 3, each: int = 100) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Groups of documents with words of their own, and a few that all share."""
    rng = np.random.default_rng(0)
    group = np.arange(groups * each) % groups
    dense = np.zeros((len(group), 20 * groups + 5), dtype=np.float32)
    for row, number in enumerate(group):
        dense[row, 20 * number + rng.choice(20, 8, replace=False)] = 1.0
        dense[row, -1 - rng.integers(0, 5)] = 1.0
    return sparse.csr_matrix(dense / 3.0), group


def test_weak_neighbors_are_of_the_same_group_and_ordered_by_distance() -> None:
    X, group = grouped_rows()
    rows, distances = weak_neighbors(start_of(X), k=10)
    assert rows.shape == distances.shape == (300, 10)
    assert (np.diff(distances, axis=1) >= 0).all()
    assert (group[rows] == group[:, None]).mean() > 0.8  # chance is a third
    assert (rows != np.arange(300)[:, None]).all()
    assert all(len(set(line)) == 10 for line in rows.tolist())


def test_a_document_with_many_copies_has_them_as_neighbors_but_not_itself() -> None:
    X, _ = grouped_rows()
    X = sparse.vstack([X, *[X[0]] * 30]).tocsr()
    rows, distances = weak_neighbors(start_of(X), k=5)
    assert rows.shape == (330, 5)
    assert (rows != np.arange(330)[:, None]).all()
    copies = [0, *range(300, 330)]
    assert (distances[copies] == 0).all()


# The ranking of RBSH


def test_the_ranking_loss_is_by_how_far_the_gap_misses_its_margin() -> None:
    d = torch.tensor([[0.0, 0.0, 0.0, 0.0]])
    near, far = torch.tensor([[1.0, 0.0, 0.0, 0.0]]), torch.tensor([[1.0, 1.0, 1.0, 0.0]])

    def loss(first: Tensor, second: Tensor, nearer: float) -> float:
        return ranking_loss(torch.cat([d, first, second]), torch.tensor([nearer])).item()

    assert loss(near, far, 1.0) == 0.0  # d1 should be nearer, and is by 2
    assert loss(far, near, -1.0) == 0.0
    assert loss(far, near, 1.0) == 3.0  # it misses a margin of 1 by the gap of 2 and 1 more
    assert loss(near, near, 1.0) == loss(near, near, -1.0) == 1.0
    assert loss(near, far, 0.0) == loss(far, near, 0.0) == 2.0  # both should be alike
    assert loss(near, near, 0.0) == 0.0


def test_triplets_are_ranked_each_by_itself() -> None:
    bits = (torch.rand((9, BITS), generator=generator()) < 0.5).float()
    nearer = torch.tensor([1.0, 0.0, -1.0])
    together = ranking_loss(bits, nearer)
    for number in range(3):
        alone = ranking_loss(bits[number::3], nearer[number : number + 1])
        torch.testing.assert_close(together[number : number + 1], alone)
