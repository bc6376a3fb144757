"""The losses of the network methods in plain dense PyTorch, for a small world with these settings.

Written from the papers' definitions (probabilities and logarithms, no closed forms of ours). They draw the
same random numbers in the same order as the objectives, so that values and gradients must agree.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

DOCS, TERMS, BITS, BATCH, EPOCHS = 60, 40, 8, 16, 12
EPOCH = 3.0  # a quarter of the way
BETA = 0.7
BATCH_DOCUMENTS = np.random.default_rng(3).permutation(DOCS)[:BATCH]


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
    q, pi = component.softmax(dim=1), dense.objective.prior.log_weights.exp()
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
    indices = objective.rng.integers(0, 6, (2, docs))
    d1, d2 = (objective.neighbors[BATCH_DOCUMENTS, index] for index in indices)
    rows = torch.cat([rows, dense.X[d1], dense.X[d2]])
    q = torch.sigmoid(dense.heads(rows)["logit"])
    s = dense.bits(q)
    z = s + dense.noise() * dense.normal(*s.shape)
    embedding = objective.importance[:, None] * (objective.words.embedding @ objective.map.t())
    ranking = torch.zeros(())
    for number, document in enumerate(BATCH_DOCUMENTS):
        own, first, second = s[number], s[docs + number], s[2 * docs + number]
        gap = (own - second).pow(2).sum() - (own - first).pow(2).sum()
        near, far = (objective.distances[document, index[number]] for index in indices)
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
