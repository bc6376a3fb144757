r"""Closed forms of the Gaussian terms of the tree-structured objective.

All of them act on each bit separately and return one value per document (or edge) and bit: callers sum and
weight as in their equation. Each has a Monte Carlo test in tests/maths.

| here | paper |
|---|---|
| mu, sigma | mean and standard deviation of q(z_i \| x_i) |
| prior | tau_ij = lambda a_ij, the correlation of z_i and z_j under p_G |
| posterior | gamma_ij, their correlation under q |
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import softplus


def node_divergence(mu: Tensor, sigma: Tensor) -> Tensor:
    """KL(q(z_i|x_i) || p_G(z_i)) = 1/2 (mu^2 + sigma^2 - 1 - 2 log sigma)."""
    return 0.5 * (mu.square() + sigma.square() - 1.0) - torch.log(sigma)


def edge_divergence(
    mu_i: Tensor, sigma_i: Tensor, mu_j: Tensor, sigma_j: Tensor, *, prior: Tensor, posterior: Tensor
) -> Tensor:
    """KL(q(z_i, z_j) || p_G(z_i, z_j)) - KL_i - KL_j, the term of one edge; it can be negative.

    1/2 [ (mu_i^2 + mu_j^2 - 2 t mu_i mu_j + s_i^2 + s_j^2 - 2 t g s_i s_j) / (1 - t^2)
          - mu_i^2 - mu_j^2 - s_i^2 - s_j^2 - log(1 - g^2) + log(1 - t^2) ]

    with t the prior and g the posterior correlation (the appendix prints mu_j without its square).
    """
    t, g = prior, posterior
    squares = mu_i.square() + mu_j.square() + sigma_i.square() + sigma_j.square()
    products = mu_i * mu_j + g * sigma_i * sigma_j
    left = 1.0 - t.square()
    return 0.5 * ((squares - 2 * t * products) / left - squares - torch.log1p(-g.square()) + torch.log(left))


def best_correlation(sigma_i: Tensor, sigma_j: Tensor, *, prior: Tensor) -> Tensor:
    """The posterior correlation that minimises `edge_divergence`.

    g enters as -a g - 1/2 log(1 - g^2) with a = t s_i s_j / (1 - t^2), so g* = (sqrt(1 + 4 a^2) - 1) / (2 a),
    written here so that a -> 0 is harmless.
    """
    a = prior * sigma_i * sigma_j / (1.0 - prior.square())
    return 2.0 * a / (1.0 + torch.sqrt(1.0 + 4.0 * a.square()))


# Closed-form divergences and entropies of bits, Gaussians and mixtures.
#
# Bits are given by their logits l (q = sigmoid(l)), which is stable near q = 0 and 1. All functions return
# one value per document and bit, or per document if they sum over components. Each has a test against
# enumeration or samples in tests/maths. For a standard normal prior see `node_divergence`.


def bit_entropy(logit: Tensor) -> Tensor:
    """H(q) = -q log q - (1 - q) log(1 - q) = softplus(l) - q l."""
    return softplus(logit) - torch.sigmoid(logit) * logit


def fair_bit_divergence(logit: Tensor) -> Tensor:
    """KL(q || Bernoulli(1/2)) = log 2 - H(q)."""
    return math.log(2.0) - bit_entropy(logit)


def bit_divergence(logit: Tensor, prior: Tensor) -> Tensor:
    """KL(q || p) = q (l - k) - softplus(l) + softplus(k), with k the logit of p."""
    return torch.sigmoid(logit) * (logit - prior) - softplus(logit) + softplus(prior)


def gaussian_divergence(mu: Tensor, sigma: Tensor, mean: Tensor, deviation: Tensor) -> Tensor:
    """KL(N(mu, sigma^2) || N(mean, deviation^2))."""
    ratio = sigma / deviation
    return 0.5 * (ratio.square() + ((mu - mean) / deviation).square() - 1.0) - torch.log(ratio)


def mixture_divergence(component: Tensor, log_weights: Tensor, by_component: Tensor) -> Tensor:
    """KL(q(z, c|x) || p(z, c)), an upper bound of KL(q(z|x) || p(z)) for p(z) = sum_c pi_c p(z|c).

    = KL(q(c|x) || pi) + sum_c q(c|x) KL(q(z|x) || p(z|c))

    Args:
        component: log q(c|x), (documents, components).
        log_weights: log pi, (components,).
        by_component: KL(q(z|x) || p(z|c)) summed over the bits, (documents, components).

    Returns:
        One value per document.
    """
    return (component.exp() * (component - log_weights + by_component)).sum(dim=1)


# The mixture prior of GMSH and BMSH.


class Mixture:
    """Trained mixture weights pi, and a row of parameters for each component.

    Args:
        components: number of components.
        bits: the length of the codes.
        generator: for the initial parameters, which differ between components.
    """

    def __init__(self, components: int, bits: int, *, generator: torch.Generator) -> None:
        self._logits = torch.zeros(components).requires_grad_()
        self.centers = torch.randn((components, bits), generator=generator).requires_grad_()
        self.parameters = [self._logits, self.centers]

    @property
    def log_weights(self) -> Tensor:
        """Log pi, (components,)."""
        return torch.log_softmax(self._logits, dim=0)


# The entropy of codes under a Markov model, which AMMI maximises.
#
# The bits of a document are independent with probabilities q. The code of a random document is a mixture over
# documents. A Markov model of that mixture, in which a bit depends on the `order` bits before it, gives an
# upper bound on its entropy:
#
#     H(Z) <= - sum_b E log p(z_b | z_(b-order) ... z_(b-1)),    with equality for the best p if Z is Markov
#
# The expectation needs only the probabilities of windows of order + 1 bits: products within a document.


def window_probabilities(q: Tensor, order: int) -> Tensor:
    """Return the probability of each value of the window of each bit, averaged over documents.

    Args:
        q: probabilities of a 1, (documents, bits).
        order: number of preceding bits in the window of a bit; zeros precede the first bit.

    Returns:
        (bits, 2**order, 2): indexed by the preceding bits as a binary number, then by the bit itself.
    """
    docs, bits = q.shape
    padded = torch.cat([torch.zeros((docs, order), dtype=q.dtype), q], dim=1)
    joint = torch.ones((docs, bits, 1), dtype=q.dtype)
    for offset in range(order + 1):
        one = padded[:, offset : offset + bits, None]
        joint = torch.stack([joint * (1.0 - one), joint * one], dim=3).reshape(docs, bits, -1)
    return joint.mean(dim=0).reshape(bits, -1, 2)


def best_prior(windows: Tensor) -> Tensor:
    """Return log p(z_b | preceding bits) of the p that minimises the bound."""
    smoothed = windows + 1e-6  # p of a window that never occurs is undefined
    return torch.log(smoothed) - torch.log(smoothed.sum(dim=2, keepdim=True))


def cross_entropy(windows: Tensor, prior: Tensor) -> Tensor:
    """Return the bound on H(Z), in nats, for log p as in `best_prior`."""
    return -(windows * prior).sum()


# Correlated bits as a mixture over random logits, for CorrSH.
#
#     r = mu + deviation * e1 + U e2,    s_b ~ Bernoulli(sigmoid(r_b)),    e1, e2 standard normal
#
# Given r the bits are independent; marginally they are correlated by the low-rank U (bits, rank).


def draw_logits(
    mu: Tensor, deviation: Tensor, factors: Tensor, *, samples: int, generator: torch.Generator
) -> Tensor:
    """Draw samples of r, (samples, documents, bits).

    Args:
        mu: (documents, bits).
        deviation: (documents, bits).
        factors: U, (documents, bits, rank).
        samples: number of samples per document.
        generator: of the samples.
    """
    docs, bits, rank = factors.shape
    own = torch.randn((samples, docs, bits), generator=generator, dtype=mu.dtype)
    shared = torch.randn((samples, docs, rank), generator=generator, dtype=mu.dtype)
    return mu + deviation * own + torch.einsum("dbr,sdr->sdb", factors, shared)


def log_probability(bits: Tensor, logits: Tensor) -> Tensor:
    """Return log of the mean over samples of p(s|r), (documents,).

    If s was drawn given one of these samples, its expectation is at least E log q(s), and tends to it with
    more samples: a divergence computed from it is never underestimated in expectation.
    """
    by_sample = (logits * bits - softplus(logits)).sum(dim=2)
    return torch.logsumexp(by_sample, dim=0) - math.log(len(logits))
