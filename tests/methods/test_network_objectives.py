"""Every loss of the network methods against the same equation in plain dense PyTorch, and by differences.

The dense equations below are written from the papers' definitions (probabilities and logarithms, no closed
forms of ours). They draw the same random numbers in the same order, so that values and gradients must agree.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import Tensor
from torch.nn.functional import softplus

from snuh.methods import make
from snuh.methods.gradient import Start
from snuh.methods.layers import word_sets

DOCS, TERMS, BITS, BATCH, EPOCHS = 60, 40, 8, 16, 12
EPOCH = 3.0  # a quarter of the way
BETA = 0.7
SETTINGS: dict[str, dict[str, Any]] = {
    "vdsh": {},
    "nbrreg": {"neighbors": 4},
    "nash": {},
    "gmsh": {"components": 3},
    "bmsh": {"components": 3},
    "ammi": {"entropy": 1.5, "order": 2},
    "corrsh": {"rank": 2, "samples": 4, "noise": 0.8, "noise_end": 0.4},
    "rbsh": {"neighbors": 6, "dims": 5, "rank": 2.5, "noise": 0.8, "noise_end": 0.4},
    "pairrec": {"neighbors": 6, "noise": 0.8},
    "wish": {"dims": 5, "alpha": 0.3},
}
every_method = pytest.mark.parametrize("name", SETTINGS)


def unit_rows() -> sparse.csr_matrix:
    rng = np.random.default_rng(0)
    dense = rng.random((DOCS, TERMS)) * (rng.random((DOCS, TERMS)) < 0.2)
    dense[np.arange(DOCS), rng.integers(0, TERMS, DOCS)] = 1.0  # no row is empty
    return sparse.csr_matrix((dense / np.linalg.norm(dense, axis=1, keepdims=True)).astype(np.float32))


def make_objective(name: str, *, depth: int) -> Any:  # any of the ten
    shared = {"hidden": 6, "depth": depth, "dropout": 0.0, "beta": BETA, "warmup": 6.0, "batch_size": BATCH}
    estimator = make(name, bits=BITS, seed=0, parameters={**shared, **SETTINGS[name]})
    X = unit_rows()
    data = estimator._training_data(X, X[:10], None)
    start = Start(data, EPOCHS, np.random.default_rng(0), torch.Generator().manual_seed(0), None)
    objective = estimator._objective(start)
    move_from_start(objective)
    return objective


def move_from_start(objective: Any) -> None:
    """Leave the places that are special: zeros, ones, equal parts and hardly any weight on the words."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in objective.parameters:
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator)


def evaluate(objective: Any, loss: Callable[[], Mapping[str, Tensor]]) -> Mapping[str, Tensor]:
    """Call it with the randomness always in the same state."""
    objective.generator.manual_seed(11)
    objective.rng = np.random.default_rng(12)
    return loss()


BATCH_DOCUMENTS = np.random.default_rng(3).permutation(DOCS)[:BATCH]


def fast_parts(objective: Any) -> Mapping[str, Tensor]:
    return evaluate(objective, lambda: objective.loss(BATCH_DOCUMENTS, epoch=EPOCH))


# The same in dense arithmetic


class Dense:
    """The pieces that the equations share, for one objective."""

    def __init__(self, objective: Any) -> None:
        self.objective, self.method = objective, objective.method
        self.X = torch.from_numpy(objective.X.toarray())
        self.beta = BETA * 0.5  # warmup is half over

    def heads(self, rows: Tensor) -> dict[str, Tensor]:
        network = self.objective.network
        values = rows if network.importance is None else rows * network.importance
        for weight, bias in zip(network.weights[:-1], network.biases[:-1], strict=True):
            values = torch.relu(values @ weight + bias)
        values = values @ network.weights[-1] + network.biases[-1]
        return dict(zip(network.heads, values.split(list(network.heads.values()), dim=1), strict=True))

    def normal(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self.objective.generator)

    def bits(self, q: Tensor) -> Tensor:
        drawn = (torch.rand(q.shape, generator=self.objective.generator) < q).float()
        return q + (drawn - q).detach()  # straight-through

    def words(self, z: Tensor, rows: Tensor, embedding: Tensor | None = None, decoder: Any = None) -> Tensor:
        """-log p(x|z), one value a document."""
        decoder = decoder or self.objective.words
        logits = z @ (decoder.embedding if embedding is None else embedding).t() + decoder.bias
        return -torch.where(rows > 0, logits.log_softmax(dim=1), 0.0).sum(dim=1)

    def noise(self) -> float:
        end = getattr(self.method, "noise_end", 0.0)
        return float(self.method.noise + (end - self.method.noise) * EPOCH / EPOCHS)


def normal_divergence(mu: Tensor, sigma: Tensor, mean: Tensor, deviation: Tensor) -> Tensor:
    return torch.distributions.kl_divergence(
        torch.distributions.Normal(mu, sigma), torch.distributions.Normal(mean, deviation)
    )


def bit_divergence(q: Tensor, p: Tensor) -> Tensor:
    return q * torch.log(q / p) + (1 - q) * torch.log((1 - q) / (1 - p))


def from_fair_bits(q: Tensor) -> Tensor:
    return bit_divergence(q, torch.full_like(q, 0.5)).sum(dim=1)


def vdsh(dense: Dense, rows: Tensor) -> dict[str, Tensor]:
    heads = dense.heads(rows)
    mu, sigma = heads["mean"], softplus(heads["deviation"])
    z = mu + sigma * dense.normal(*mu.shape)
    standard = normal_divergence(mu, sigma, torch.zeros(()), torch.ones(()))
    return {
        "words": dense.words(z, rows).mean(),
        "divergence": dense.beta * standard.sum(dim=1).mean(),
    }


def nbrreg(dense: Dense, rows: Tensor) -> dict[str, Tensor]:
    heads = dense.heads(rows)
    mu, sigma = heads["mean"], softplus(heads["deviation"])
    z = mu + sigma * dense.normal(*mu.shape)
    cosine = dense.X @ dense.X.t()
    cosine.fill_diagonal_(-1.0)
    nearest = cosine[BATCH_DOCUMENTS].topk(4, dim=1).indices
    around = (dense.X[nearest] > 0).any(dim=1).float()
    neighbor_words = dense.words(z, around, decoder=dense.objective.neighbor_words)
    standard = normal_divergence(mu, sigma, torch.zeros(()), torch.ones(()))
    return {
        "words": dense.words(z, rows).mean(),
        "neighbor words": neighbor_words.mean(),
        "divergence": dense.beta * standard.sum(dim=1).mean(),
    }


def nash(dense: Dense, rows: Tensor) -> dict[str, Tensor]:
    heads = dense.heads(rows)
    q = torch.sigmoid(heads["logit"])
    s = dense.bits(q)
    z = s + softplus(heads["noise"]) * dense.normal(*s.shape)
    return {"words": dense.words(z, rows).mean(), "divergence": dense.beta * from_fair_bits(q).mean()}


def from_mixture(dense: Dense, component: Tensor, within: Tensor) -> Tensor:
    """KL(q(c|x) || pi) + sum_c q(c|x) KL_c."""
    q, pi = component.softmax(dim=1), dense.objective.prior.log_shares.exp()
    return (q * torch.log(q / pi)).sum(dim=1) + (q * within).sum(dim=1)


def gmsh(dense: Dense, rows: Tensor) -> dict[str, Tensor]:
    heads, prior = dense.heads(rows), dense.objective.prior
    mu, sigma = heads["mean"], softplus(heads["deviation"])
    z = mu + sigma * dense.normal(*mu.shape)
    spreads = softplus(dense.objective.spreads)
    within = torch.stack(
        [normal_divergence(mu, sigma, prior.centers[c], spreads[c]).sum(dim=1) for c in range(3)], dim=1
    )
    divergence = from_mixture(dense, heads["component"], within)
    return {"words": dense.words(z, rows).mean(), "divergence": dense.beta * divergence.mean()}


def bmsh(dense: Dense, rows: Tensor) -> dict[str, Tensor]:
    heads, prior = dense.heads(rows), dense.objective.prior
    q = torch.sigmoid(heads["logit"])
    s = dense.bits(q)
    z = s + softplus(heads["noise"]) * dense.normal(*s.shape)
    within = torch.stack(
        [bit_divergence(q, torch.sigmoid(prior.centers[c])).sum(dim=1) for c in range(3)], dim=1
    )
    divergence = from_mixture(dense, heads["component"], within)
    return {"words": dense.words(z, rows).mean(), "divergence": dense.beta * divergence.mean()}


def ammi(dense: Dense, rows: Tensor) -> dict[str, Tensor]:
    """The Markov model of order 2 from the probabilities of all codes."""
    q = torch.sigmoid(dense.heads(rows)["logit"])
    codes = torch.tensor(list(itertools.product([0.0, 1.0], repeat=BITS)))
    p = torch.where(codes == 1, q[:, None], 1 - q[:, None]).prod(dim=2).mean(dim=0)
    bound = torch.zeros(())
    for bit in range(BITS):
        before = codes[:, max(0, bit - 2) : bit]
        for context in itertools.product([0.0, 1.0], repeat=before.shape[1]):
            is_here = (before == torch.tensor(context)).all(dim=1)
            both = torch.stack([p[is_here & (codes[:, bit] == value)].sum() for value in (0.0, 1.0)])
            bound = bound - (both * torch.log(both / both.sum())).sum()
    entropy = -(q * torch.log(q) + (1 - q) * torch.log(1 - q)).sum(dim=1).mean()
    return {"own entropy": dense.beta * entropy, "entropy": -1.5 * bound}


def corrsh(dense: Dense, rows: Tensor) -> dict[str, Tensor]:
    heads, docs = dense.heads(rows), len(rows)
    factors = torch.tanh(heads["factors"]).reshape(docs, BITS, 2) / 2
    own, shared = dense.normal(4, docs, BITS), dense.normal(4, docs, 2)
    r = heads["logit"] + softplus(heads["deviation"]) * own + (factors * shared[:, :, None]).sum(dim=3)
    p = torch.sigmoid(r)
    s = dense.bits(p[0])
    mixture = (p.log() * s + (1 - p).log() * (1 - s)).sum(dim=2).exp().mean(dim=0)
    z = s + dense.noise() * dense.normal(docs, BITS)
    divergence = torch.log(mixture) - BITS * math.log(0.5)
    return {"words": dense.words(z, rows).mean(), "divergence": dense.beta * divergence.mean()}


def rbsh(dense: Dense, rows: Tensor) -> dict[str, Tensor]:
    objective, docs = dense.objective, len(rows)
    places = objective.rng.integers(0, 6, (2, docs))
    d1, d2 = (objective.neighbors[BATCH_DOCUMENTS, place] for place in places)
    rows = torch.cat([rows, dense.X[d1], dense.X[d2]])
    q = torch.sigmoid(dense.heads(rows)["logit"])
    s = dense.bits(q)
    z = s + dense.noise() * dense.normal(*s.shape)
    embedding = objective.importance[:, None] * (objective.words.embedding @ objective.map.t())
    ranking = torch.zeros(())
    for number, document in enumerate(BATCH_DOCUMENTS):
        own, first, second = s[number], s[docs + number], s[2 * docs + number]
        gap = (own - second).pow(2).sum() - (own - first).pow(2).sum()
        near, far = (objective.distances[document, place[number]] for place in places)
        if near == far:
            ranking = ranking + gap.abs()
        else:
            ranking = ranking + torch.relu(1 - gap if near < far else 1 + gap)
    weight = objective.method.rank * EPOCH / EPOCHS
    return {
        "words": dense.words(z, rows, embedding).sum() / docs,
        "divergence": dense.beta * from_fair_bits(q[:docs]).sum() / docs,
        "ranking": weight * ranking / docs,
    }


def pairrec(dense: Dense, rows: Tensor) -> dict[str, Tensor]:
    objective, docs = dense.objective, len(rows)
    other = objective.neighbors[BATCH_DOCUMENTS, objective.rng.integers(0, 6, docs)]
    q = torch.sigmoid(dense.heads(torch.cat([rows, dense.X[other]]))["logit"])
    s = dense.bits(q)
    z = s + dense.noise() * dense.normal(*s.shape)
    embedding = objective.importance[:, None] * objective.words.embedding
    return {
        "words": dense.words(z[:docs], rows, embedding).mean(),
        "pair words": dense.words(z[docs:], rows, embedding).mean(),
        "divergence": dense.beta * from_fair_bits(q[:docs]).mean(),
    }


def wish(dense: Dense, rows: Tensor) -> dict[str, Tensor]:
    topics = dense.objective.topics
    q = torch.sigmoid(dense.heads(rows)["logit"])
    s = dense.bits(q)
    angles = topics @ topics.t() - torch.eye(BITS)
    return {
        "words": dense.words(s @ topics, rows).mean(),
        "divergence": dense.beta * from_fair_bits(q).mean(),
        "angles": 0.3 * torch.linalg.matrix_norm(angles) ** 2,
    }


EQUATIONS = {
    function.__name__: function
    for function in (vdsh, nbrreg, nash, gmsh, bmsh, ammi, corrsh, rbsh, pairrec, wish)
}


@every_method
@pytest.mark.parametrize("depth", [0, 1])
def test_the_loss_and_its_gradients_are_those_of_the_equation(name: str, depth: int) -> None:
    objective = make_objective(name, depth=depth)
    dense = Dense(objective)
    results = []
    for loss in (
        lambda: objective.loss(BATCH_DOCUMENTS, epoch=EPOCH),
        lambda: EQUATIONS[name](dense, dense.X[BATCH_DOCUMENTS]),
    ):
        parts = evaluate(objective, loss)
        sum(parts.values()).backward()
        results.append((parts, [parameter.grad for parameter in objective.parameters]))
        for parameter in objective.parameters:
            parameter.grad = None
    (parts, gradients), (expected_parts, expected_gradients) = results
    assert list(parts) == list(expected_parts)
    for part, value in parts.items():
        torch.testing.assert_close(value, expected_parts[part], rtol=1e-4, atol=1e-4)
    for gradient, expected in zip(gradients, expected_gradients, strict=True):
        assert gradient.abs().max() > 0  # nothing is left untrained
        torch.testing.assert_close(gradient, expected, rtol=1e-3, atol=1e-3 * float(expected.abs().max()))


# By finite differences: here the encoder is linear, for a ReLU has kinks that a step may cross.

STEP = 0.01  # rounding of a loss of some 100 is 1e-5, and 1e-3 in a difference over this step
TOLERANCE = {"rel": 0.02, "abs": 4e-3}
PROBES = 6
SMOOTH = ("vdsh", "nbrreg", "gmsh", "ammi")  # the others draw bits, which jump as the encoder moves


def differentiable(name: str, objective: Any) -> Iterator[tuple[Tensor, slice]]:
    """The parameters that the loss is smooth in, and which of their columns."""
    encoder = (*objective.network.parameters, getattr(objective, "importance", None))
    for parameter in objective.parameters:
        if name in SMOOTH or not any(parameter is part for part in encoder):
            yield parameter, slice(None)
        elif name in ("nash", "bmsh") and parameter.shape[-1] > BITS:
            yield parameter, slice(BITS, None)  # of the heads behind the bits' own


@every_method
def test_gradients_agree_with_finite_differences(name: str) -> None:
    objective = make_objective(name, depth=0)
    sum(fast_parts(objective).values()).backward()
    rng = np.random.default_rng(0)
    checked = 0
    for parameter, columns in differentiable(name, objective):
        gradient, values = parameter.grad[..., columns], parameter.data[..., columns]
        largest = np.argsort(-gradient.abs().numpy().ravel())[:PROBES]
        for flat in (*largest, *rng.integers(0, gradient.numel(), PROBES)):
            place = np.unravel_index(flat, gradient.shape)
            before = values[place].item()
            ends = []
            for step in (STEP, -STEP):
                values[place] = before + step
                ends.append(sum(part.item() for part in fast_parts(objective).values()))
            values[place] = before
            difference = (ends[0] - ends[1]) / (2 * STEP)
            assert gradient[place].item() == pytest.approx(difference, **TOLERANCE)
            checked += 1
    assert checked >= 2 * PROBES


def leaves(loss: Tensor) -> set[int]:
    """The ids of all tensors that the loss is a function of and that want a gradient."""
    found, seen, waiting = set(), set(), [loss.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            found.add(id(node.variable))
        waiting += [function for function, _ in node.next_functions]
    return found


@every_method
def test_all_that_the_loss_can_learn_is_trained_and_only_once(name: str) -> None:
    objective = make_objective(name, depth=1)
    trained = [id(parameter) for parameter in objective.parameters]
    assert len(set(trained)) == len(trained)
    assert set(trained) == leaves(sum(fast_parts(objective).values()))


@every_method
def test_an_epoch_has_every_document_once(name: str) -> None:
    objective = make_objective(name, depth=0)
    batches = list(objective.batches(np.random.default_rng(0), epoch=0))
    assert len(batches) == objective.steps
    assert sorted(np.concatenate(batches)) == list(range(DOCS))


@every_method
def test_the_parts_stay_finite_where_all_bits_are_certain(name: str) -> None:
    objective = make_objective(name, depth=0)
    with torch.no_grad():
        objective.network.weights[0][:, :BITS] *= 1e3
    parts = fast_parts(objective)
    sum(parts.values()).backward()
    assert all(torch.isfinite(value) for value in parts.values())
    assert all(torch.isfinite(parameter.grad).all() for parameter in objective.parameters)


EXPLAINING = [name for name in SETTINGS if name != "ammi"]


@pytest.mark.parametrize("name", EXPLAINING)
def test_the_decoder_says_how_far_a_bit_raises_the_score_of_each_word(name: str) -> None:
    """Two codes that differ in a bit: their logits differ by that bit's column, up to what is alike."""
    objective = make_objective(name, depth=0)
    by_bit = objective.decoder()
    assert by_bit.shape == (TERMS, BITS)
    to_latent = objective.topics if name == "wish" else torch.eye(BITS)
    embedding = None
    if name in ("rbsh", "pairrec"):
        by_word = (
            objective.words.embedding @ objective.map.t() if name == "rbsh" else objective.words.embedding
        )
        embedding = by_word * objective.importance[:, None]
    words = sparse.csr_matrix(np.eye(TERMS, dtype=np.float32))  # documents of one word each

    def log_shares(code: Tensor) -> Tensor:
        shares = []
        for first in range(0, TERMS, BATCH):
            some = word_sets(words[first : first + BATCH])
            z = (code @ to_latent).expand(len(some.sizes), -1)
            shares.append(objective.words.log_likelihood(z, some, embedding=embedding).detach())
        return torch.cat(shares)

    without = log_shares(torch.zeros(BITS))
    for bit in range(BITS):
        raised = log_shares(torch.eye(BITS)[bit]) - without
        difference = raised - torch.from_numpy(by_bit[:, bit])
        torch.testing.assert_close(difference, difference.mean().expand(TERMS), rtol=1e-4, atol=1e-4)
