"""The fast sparse objective equals the readable dense one, and its estimates are unbiased."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

from snuh.codes import unpack
from snuh.encoder import Encoder
from snuh.methods.snuh_plus import SNUHPlus
from snuh.training.kl import best_correlation, edge_divergence, node_divergence
from snuh.training.layers import sparse_linear, word_log_likelihood, word_sets
from snuh.training.sparse_ops import take_rows
from snuh.training.tree_objective import (
    Edges,
    Neighborhoods,
    TreeBatch,
    TreeObjective,
    hide_words,
    word_weight,
)
from tests.reference.dense_snuh import DenseSNUH
from tests.training.differences import assert_gradient_is_right
from tests.training.posterior import posterior

DOCS, TERMS, BITS = 30, 50, 8


def unit_rows(seed: int, docs: int = DOCS) -> sparse.csr_matrix:
    X = sparse.random(docs, TERMS, density=0.2, format="csr", dtype=np.float32, random_state=seed)
    X.sort_indices()
    lengths = np.sqrt(X.multiply(X).sum(axis=1)).A1
    return sparse.csr_matrix(sparse.diags(1 / np.maximum(lengths, 1e-9)) @ X, dtype=np.float32)


def some_edges(seed: int, count: int = 40) -> Edges:
    rng = np.random.default_rng(seed)
    pairs = np.array([rng.choice(DOCS, 2, replace=False) for _ in range(count)], dtype=np.int32)
    return Edges(
        pairs,
        rng.uniform(0.1, 1, count).astype(np.float32),
        rng.uniform(0.3, 0.99, count).astype(np.float32),
    )


def objective(
    seed: int = 0,
    *,
    rebuild_edges: Callable[[Encoder], Edges] | None = None,
    word_weight: float = 1.0,
    **changes: Any,
) -> TreeObjective:
    defaults = {"n_bits": BITS, "tau": 0.3, "beta": 0.7, "correlation": "encoder", "word_dropout": 0.0,
                "warmup": 0.0, "init_range": 0.3, "start": "random", "batch_size": 16, "neighbor_words": 0.0,
                "refresh": 0.0, "epochs": 10}  # fmt: skip
    generator = torch.Generator().manual_seed(seed)
    built = TreeObjective(
        SNUHPlus(**{**defaults, **changes}),
        unit_rows(1),
        some_edges(2),
        generator=generator,
        rebuild_edges=rebuild_edges,
    )
    built.word_weight = word_weight  # the rows have ten words each
    return built


def dense_twin(approximate: TreeObjective) -> DenseSNUH:
    method = approximate.method
    twin = DenseSNUH(TERMS, BITS, tau=method.tau, beta=approximate.beta, correlation=method.correlation)
    weight, bias = approximate.weight.detach(), approximate.bias.detach()
    with torch.no_grad():
        twin.mean.weight.copy_(weight[:, :BITS].t())
        twin.mean.bias.copy_(bias[:BITS])
        twin.deviation.weight.copy_(weight[:, BITS : 2 * BITS].t())
        twin.deviation.bias.copy_(bias[BITS : 2 * BITS])
        if method.correlation == "encoder":
            part = weight[:, 2 * BITS :].t()
            twin.pair.weight.copy_(torch.cat([part, part], dim=1))
            twin.pair.bias.copy_(2 * bias[2 * BITS :])  # the fast one adds it for each of the two documents
        twin.decoder.weight.copy_(approximate.words.embedding.detach())
        twin.decoder.bias.copy_(approximate.words.bias.detach())
    return twin


@pytest.mark.parametrize("correlation", ["encoder", "optimum", "prior", "none"])
def test_fast_objective_equals_the_dense_one_in_loss_and_gradients(correlation: str) -> None:
    approximate = objective(correlation=correlation)
    twin = dense_twin(approximate)
    batch = next(approximate.batches(np.random.default_rng(0), epoch=0))
    state = approximate.generator.get_state()
    noise = torch.randn((len(batch.documents), BITS), generator=approximate.generator)
    approximate.generator.set_state(state)

    dense = torch.from_numpy(approximate.X.toarray())
    expected = twin.loss(
        dense[batch.documents],
        dense[batch.neighbors],
        noise=noise,
        weight=batch.weight,
        t=batch.prior[:, None],
    )
    loss = sum(approximate.loss(batch, epoch=5.0).values())
    torch.testing.assert_close(loss, expected, rtol=1e-5, atol=1e-5)

    loss.backward()
    expected.backward()
    close = {"rtol": 1e-3, "atol": 2e-5}
    torch.testing.assert_close(approximate.weight.grad[:, :BITS], twin.mean.weight.grad.t(), **close)
    torch.testing.assert_close(
        approximate.weight.grad[:, BITS : 2 * BITS], twin.deviation.weight.grad.t(), **close
    )
    torch.testing.assert_close(approximate.bias.grad[:BITS], twin.mean.bias.grad, **close)
    torch.testing.assert_close(approximate.bias.grad[BITS : 2 * BITS], twin.deviation.bias.grad, **close)
    torch.testing.assert_close(approximate.words.embedding.grad, twin.decoder.weight.grad, **close)
    torch.testing.assert_close(approximate.words.bias.grad, twin.decoder.bias.grad, **close)
    if correlation == "encoder":
        # The dense encoder has one weight for each place of the pair; the fast one their sum.
        both = twin.pair.weight.grad[:, :TERMS] + twin.pair.weight.grad[:, TERMS:]
        torch.testing.assert_close(approximate.weight.grad[:, 2 * BITS :], both.t(), **close)


def test_layers_gradients_agree_with_finite_differences() -> None:
    rows = unit_rows(3, docs=6).astype(np.float64)
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn((TERMS, 4), dtype=torch.float64, generator=generator)
    z = torch.randn((6, 4), dtype=torch.float64, generator=generator)
    bias = torch.randn(TERMS, dtype=torch.float64, generator=generator)
    present = word_sets(rows, torch.float64)
    assert_gradient_is_right(lambda w: sparse_linear(rows, w), weight)
    assert_gradient_is_right(lambda a: word_log_likelihood(a, weight, bias, present), z)
    assert_gradient_is_right(lambda e: word_log_likelihood(z, e, bias, present), weight)
    assert_gradient_is_right(lambda b: word_log_likelihood(z, weight, b, present), bias)


def test_words_are_the_columns_with_a_positive_value() -> None:
    rows = sparse.csr_matrix(np.array([[0.5, -0.5, 0.0], [0.0, 0.0, 0.0], [1.0, 2.0, -1.0]]))
    present = word_sets(rows)
    assert present.sizes.tolist() == [1, 0, 2]
    assert present.offsets.tolist() == [0, 1, 1, 3]
    assert present.words.tolist() == [0, 0, 1]


def test_word_likelihood_survives_extreme_logits() -> None:
    rows = unit_rows(3, docs=4)
    z = torch.full((4, 2), 300.0, requires_grad=True)
    embedding = torch.randn((TERMS, 2), generator=torch.Generator().manual_seed(0))
    value = word_log_likelihood(z, embedding, torch.zeros(TERMS), word_sets(rows))
    value.sum().backward()
    assert torch.isfinite(value).all()
    assert torch.isfinite(z.grad).all()


def test_correlation_does_not_depend_on_the_order_of_a_pair() -> None:
    approximate = objective()
    batch = next(approximate.batches(np.random.default_rng(0), epoch=0))
    turned = TreeBatch(batch.neighbors, batch.documents, batch.weight, batch.prior)
    values = []
    for drawn in (batch, turned):
        approximate.generator.manual_seed(0)
        values.append(approximate.loss(drawn, epoch=1.0)["edges"].item())
    assert values[0] == pytest.approx(values[1], rel=1e-5)


def test_batches_estimate_the_sums_over_all_documents_and_edges_without_bias() -> None:
    """The mean of the edge part over many batches is (1/N) sum over edges of w_ij times the edge's term."""
    approximate, edges = objective(correlation="optimum", beta=1.0), some_edges(2)
    q = posterior(approximate, approximate.X)
    i, j = edges.pairs.T
    prior = torch.from_numpy(edges.prior)[:, None]
    gamma = best_correlation(q.sigma[i], q.sigma[j], prior=prior)
    terms = edge_divergence(q.mu[i], q.sigma[i], q.mu[j], q.sigma[j], prior=prior, posterior=gamma).sum(dim=1)
    whole = {
        "nodes": node_divergence(q.mu, q.sigma).sum().item() / DOCS,
        "edges": torch.dot(torch.from_numpy(edges.weight), terms).item() / DOCS,
    }
    rng = np.random.default_rng(0)
    batches = [
        batch for _ in range(300) for batch in approximate.batches(rng, epoch=0) if len(batch.documents) == 16
    ]
    losses = [approximate.loss(batch, epoch=1.0) for batch in batches]
    for name, expected in whole.items():
        samples = np.array([loss[name].item() for loss in losses])
        error = samples.std(ddof=1) / np.sqrt(len(samples))
        assert abs(samples.mean() - expected) < 5 * error


def test_a_document_without_an_edge_has_no_edge_term() -> None:
    edges = Edges(np.array([[0, 1]], dtype=np.int32), np.ones(1, np.float32), np.full(1, 0.9, np.float32))
    batch = Neighborhoods(edges, 3).draw(np.array([2, 1, 0]), np.random.default_rng(0))
    assert batch.neighbors.tolist() == [2, 0, 1]
    assert batch.weight.tolist() == [0.0, 0.5, 0.5]


def test_every_edge_of_a_document_is_drawn() -> None:
    pairs = np.array([[0, 1], [0, 2], [0, 3], [1, 3]], dtype=np.int32)
    edges = Edges(pairs, np.ones(4, np.float32), np.full(4, 0.9, np.float32))
    drawn = Neighborhoods(edges, 4).draw(np.zeros(3_000, dtype=np.int64), np.random.default_rng(0)).neighbors
    assert np.abs(np.bincount(drawn, minlength=4) / 3_000 - [0, 1 / 3, 1 / 3, 1 / 3]).max() < 0.05


def test_a_prior_alone_leaves_the_posterior_uncorrelated() -> None:
    approximate = objective(correlation="prior", beta=1.0)
    batch = next(approximate.batches(np.random.default_rng(0), epoch=0))
    i, j = (posterior(approximate, approximate.X[part]) for part in (batch.documents, batch.neighbors))
    prior = batch.prior[:, None]
    gamma = torch.zeros_like(i.sigma)
    terms = edge_divergence(i.mu, i.sigma, j.mu, j.sigma, prior=prior, posterior=gamma).sum(dim=1)
    found = approximate.loss(batch, epoch=1.0)["edges"]
    torch.testing.assert_close(found, (batch.weight * terms).mean(), rtol=1e-4, atol=1e-4)


def test_hidden_words_are_still_to_be_explained() -> None:
    """Encoded from no word at all, a document's words are all explained by the bias."""
    approximate = objective(correlation="none", word_dropout=0.999_999)
    with torch.no_grad():
        approximate.bias[BITS:] = -40.0  # no deviation, so the sample is the mean
        approximate.weight[:, BITS:] = 0.0
    batch = next(approximate.batches(np.random.default_rng(0), epoch=0))
    z = torch.sigmoid(approximate.bias.detach()[:BITS] / approximate.method.tau)
    logits = approximate.words.embedding.detach() @ z + approximate.words.bias.detach()
    words = torch.from_numpy(approximate.X[batch.documents].toarray() > 0)
    expected = -(words * torch.log_softmax(logits, dim=0)).sum(1).mean()
    torch.testing.assert_close(approximate.loss(batch, epoch=1.0)["words"].detach(), expected)


def test_beta_grows_over_the_warmup() -> None:
    approximate = objective(correlation="none", warmup=4.0)
    batch = next(approximate.batches(np.random.default_rng(0), epoch=0))
    half, full, later = (approximate.loss(batch, epoch=epoch)["nodes"].item() for epoch in (2.0, 4.0, 9.0))
    assert half == pytest.approx(full / 2, rel=1e-5)
    assert full == pytest.approx(later, rel=1e-6)


def test_codes_start_balanced() -> None:
    values = objective().encoder().values(unit_rows(1))
    assert np.abs((values > 0.5).mean(axis=0) - 0.5).max() <= 1 / DOCS


def test_median_threshold_balances_codes_wherever_the_means_lie() -> None:
    approximate = objective(threshold="median")
    with torch.no_grad():
        approximate.bias[:BITS] = -3.0
    encoder = approximate.encoder()
    ones = np.unpackbits(encoder.encode(approximate.X), axis=1).mean(axis=0)
    assert np.abs(ones - 0.5).max() <= 1 / DOCS


def test_numpy_encoder_equals_the_training_model() -> None:
    approximate = objective()
    rows = unit_rows(5)
    mu = posterior(approximate, rows).mu.detach().numpy()
    np.testing.assert_allclose(approximate.encoder().values(rows), mu, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(np.unpackbits(approximate.encoder().encode(rows), axis=1), mu > 0.5)


def test_neighbor_words_scores_the_first_documents_words_by_the_seconds_code() -> None:
    """Without noise the two word terms are plain means over half of the batch each."""
    approximate = objective(neighbor_words=3.0)
    with torch.no_grad():
        approximate.bias[BITS : 2 * BITS] = -40.0  # no deviation, so the sample is the mean
    batch = next(approximate.batches(np.random.default_rng(0), epoch=0))
    parts = approximate.loss(batch, epoch=1.0)
    half = len(batch.documents) // 2

    def explained(codes_of: np.ndarray, words_of: np.ndarray) -> float:
        z = posterior(approximate, approximate.X[codes_of]).mu.detach()
        words = torch.from_numpy(approximate.X[words_of].toarray() > 0)
        logits = z @ approximate.words.embedding.detach().t() + approximate.words.bias.detach()
        return float((words * torch.log_softmax(logits, dim=1)).sum(1).mean())

    own, rest = batch.documents[:half], batch.documents[half:]
    assert parts["words"].item() == pytest.approx(-explained(own, own), rel=1e-5)
    others = batch.neighbors[half:]
    assert parts["neighbor words"].item() == pytest.approx(-3.0 * explained(others, rest), rel=1e-5)


def test_words_of_short_documents_weigh_as_much_as_those_of_longer_ones() -> None:
    def rows(words: int) -> sparse.csr_matrix:
        return sparse.csr_matrix(np.vstack([np.ones((4, words)), np.zeros((2, words))]))

    assert [word_weight(rows(words)) for words in (5, 25, 50, 200)] == [10.0, 2.0, 1.0, 1.0]


def test_the_weight_of_words_reaches_the_loss() -> None:
    parts = []
    for weight in (1.0, 4.0):
        approximate = objective(neighbor_words=2.0, word_weight=weight)
        batch = next(approximate.batches(np.random.default_rng(0), epoch=0))
        parts.append({name: part.item() for name, part in approximate.loss(batch, epoch=1.0).items()})
    ratio = {name: parts[1][name] / parts[0][name] for name in parts[0]}
    assert ratio == pytest.approx({"words": 4, "neighbor words": 4, "nodes": 1, "edges": 1}, rel=1e-4)


def test_the_weight_of_words_is_that_of_the_training_rows() -> None:
    X = unit_rows(1)
    generator = torch.Generator().manual_seed(0)
    method = SNUHPlus(n_bits=BITS, start="random")
    assert TreeObjective(method, X, some_edges(2), generator=generator).word_weight == word_weight(X) > 1


def test_hidden_words_keep_the_expected_input_and_the_target() -> None:
    rows, generator = take_rows(unit_rows(1), np.arange(10)), torch.Generator().manual_seed(0)
    drawn = np.mean([hide_words(rows, 0.4, generator).data for _ in range(4000)], axis=0)
    error = rows.data * np.sqrt(0.4 / 0.6 / 4000)
    assert (np.abs(drawn - rows.data) <= 5 * error + 1e-6).all()
    hidden = hide_words(rows, 0.4, generator)
    assert (hidden.data == 0).any()
    assert (rows.data != 0).all()


def test_edges_are_rebuilt_once_at_the_given_fraction_of_the_epochs() -> None:
    calls: list[int] = []

    def rebuild_edges(encoder: Encoder) -> Edges:
        calls.append(epoch)
        return some_edges(9, count=7)

    approximate = objective(refresh=0.4, epochs=5, rebuild_edges=rebuild_edges)
    for epoch in range(5):
        next(approximate.batches(np.random.default_rng(0), epoch=epoch))
    assert calls == [2]


def test_edges_are_never_rebuilt_if_refresh_is_zero() -> None:
    calls: list[Encoder] = []
    approximate = objective(refresh=0.0, rebuild_edges=lambda encoder: calls.append(encoder) or some_edges(9))
    for epoch in range(5):
        next(approximate.batches(np.random.default_rng(0), epoch=epoch))
    assert not calls


def test_two_backward_passes_add_up_as_they_do_everywhere_in_torch() -> None:
    approximate = objective()
    batch = next(approximate.batches(np.random.default_rng(0), epoch=0))
    gradients = []
    for _ in range(2):
        approximate.generator.manual_seed(0)
        sum(approximate.loss(batch, epoch=1.0).values()).backward()
        gradients.append([parameter.grad.clone() for parameter in approximate.parameters])
    for once, twice in zip(*gradients, strict=True):
        torch.testing.assert_close(2 * once, twice)


def test_an_itq_start_gives_the_codes_of_itq() -> None:
    X = objective().X
    started = objective(start="itq")
    values = started.X @ started.weight.detach()[:, : started.method.n_bits].numpy()
    assert (values - values.mean(axis=0)).std() == pytest.approx(0.2, rel=1e-3)
    assert ((values > np.median(values, axis=0)) == unpack(started.encoder().encode(X))).all()
    # Closer to bits than the same directions turned at random.
    centred = values - values.mean(axis=0)
    random = np.linalg.qr(np.random.default_rng(0).standard_normal((values.shape[1],) * 2))[0]

    def loss(v: np.ndarray) -> float:
        return float(((np.sign(v) * np.abs(v).mean() - v) ** 2).mean())

    assert loss(centred) < loss(centred @ random)


@pytest.mark.parametrize("correlation", ["encoder", "optimum", "prior", "none"])
@pytest.mark.parametrize(("neighbor_words", "weight"), [(0.0, 1.0), (1.5, 1.0), (1.5, 2.5)])
def test_gradients_agree_with_finite_differences(
    correlation: str, neighbor_words: float, weight: float
) -> None:
    approximate = objective(correlation=correlation, neighbor_words=neighbor_words, word_weight=weight)
    batch = next(approximate.batches(np.random.default_rng(0), epoch=0))

    def loss() -> torch.Tensor:
        approximate.generator.manual_seed(0)
        return sum(approximate.loss(batch, epoch=1.0).values())

    loss().backward()
    step = 0.01  # rounding of a loss of some 100 is 1e-5, and 1e-3 in a difference over this step
    for parameter in approximate.parameters:
        flat, gradient = parameter.data.view(-1), parameter.grad.view(-1).clone()
        for index in gradient.abs().topk(6).indices:
            before = flat[index].item()
            ends = []
            for moved in (before + step, before - step):
                flat[index] = moved
                with torch.no_grad():
                    ends.append(loss().item())
            flat[index] = before
            difference = (ends[0] - ends[1]) / (2 * step)
            assert gradient[index].item() == pytest.approx(difference, rel=0.03, abs=4e-3)


@pytest.mark.parametrize("correlation", ["encoder", "optimum", "prior"])
def test_extreme_outputs_keep_loss_and_gradients_finite(correlation: str) -> None:
    approximate = objective(correlation=correlation)
    with torch.no_grad():
        approximate.weight *= 300
        approximate.weight[
            :, BITS : 2 * BITS
        ].abs_()  # huge deviations; tiny ones have an infinite divergence
    batch = next(approximate.batches(np.random.default_rng(0), epoch=0))
    loss = sum(approximate.loss(batch, epoch=1.0).values())
    loss.backward()
    assert torch.isfinite(loss)
    assert all(torch.isfinite(parameter.grad).all() for parameter in approximate.parameters)
