r"""Closed forms of the Gaussian terms of the tree-structured objective.

All of them act on every bit by itself and return one value per document or per edge and bit, so that a caller
sums or weighs as its equation says. Each has a Monte Carlo test in tests/maths.

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
    squares = mu_i.square() + mu_j.square() + sigma_i.square() + sigma_j.square()
    products = mu_i * mu_j + posterior * (sigma_i * sigma_j)
    left = 1.0 - prior.square()
    # The bracket, sorted by what it multiplies; the factors are one number an edge.
    of_squares, of_products = 0.5 * prior.square() / left, prior / left
    logs = 0.5 * torch.log(left) - 0.5 * torch.log1p(-posterior.square())
    return of_squares * squares - of_products * products + logs


def best_correlation(sigma_i: Tensor, sigma_j: Tensor, *, prior: Tensor) -> Tensor:
    """The posterior correlation that minimises `edge_divergence`.

    g enters as -a g - 1/2 log(1 - g^2) with a = t s_i s_j / (1 - t^2), so g* = (sqrt(1 + 4 a^2) - 1) / (2 a),
    written here so that a -> 0 is harmless.
    """
    a = prior * sigma_i * sigma_j / (1.0 - prior.square())
    return 2.0 * a / (1.0 + torch.sqrt(1.0 + 4.0 * a.square()))


# Closed-form divergences and entropies of bits, Gaussians and mixtures.
#
# Bits are given by their logits l (q = sigmoid(l)), so that nothing needs to be kept away from 0 and 1. All
# return one value per document and bit, or per document where they sum over components. Each has a test
# against
# enumeration or samples in tests/maths. For a standard normal prior there is `gaussians.node_divergence`.


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


def mixture_divergence(component: Tensor, shares: Tensor, by_component: Tensor) -> Tensor:
    """KL(q(z, c|x) || p(z, c)), which bounds KL(q(z|x) || p(z)) for p(z) = sum_c pi_c p(z|c) from above.

    = KL(q(c|x) || pi) + sum_c q(c|x) KL(q(z|x) || p(z|c))

    Args:
        component: log q(c|x), (documents, components).
        shares: log pi, (components,).
        by_component: KL(q(z|x) || p(z|c)) summed over the bits, (documents, components).

    Returns:
        One value a document.
    """
    return (component.exp() * (component - shares + by_component)).sum(dim=1)


# The prior of the two mixture methods: components with shares, and a head that tells them apart.


class Mixture:
    """Learnt log pi of the components, and for each a row of parameters.

    Args:
        components: how many.
        bits: the length of the codes.
        generator: of the start; the components start apart from each other.
    """

    def __init__(self, components: int, bits: int, *, generator: torch.Generator) -> None:
        self._shares = torch.zeros(components).requires_grad_()
        self.centers = torch.randn((components, bits), generator=generator).requires_grad_()
        self.parameters = [self._shares, self.centers]

    @property
    def log_shares(self) -> Tensor:
        """The logarithm of pi, (components,)."""
        return torch.log_softmax(self._shares, dim=0)


# The entropy of codes under a Markov model, which AMMI maximises.
#
# Documents have independent bits with probabilities q; what is asked for is the entropy of the code of a
# random
# document, a mixture of as many products as there are documents. A Markov model of that mixture, in which a
# bit
# depends on the `order` bits before it, gives an upper bound:
#
#     H(Z) <= - sum_b E log p(z_b | z_(b-order) ... z_(b-1)),    with equality for the best p if Z is Markov
#
# The expectation needs only the probabilities of windows of order + 1 bits: products, within a document.


def window_probabilities(q: Tensor, order: int) -> Tensor:
    """Return the probability of each value of each bit's window, over all documents.

    Args:
        q: probabilities of a 1, (documents, bits).
        order: how many bits before it belong to a bit's window; before the first one there are zeros.

    Returns:
        (bits, 2**order, 2): by the number that the bits before it make, then by the bit itself.
    """
    docs, bits = q.shape
    padded = torch.cat([torch.zeros((docs, order), dtype=q.dtype), q], dim=1)
    joint = torch.ones((docs, bits, 1), dtype=q.dtype)
    for offset in range(order + 1):
        one = padded[:, offset : offset + bits, None]
        joint = torch.stack([joint * (1.0 - one), joint * one], dim=3).reshape(docs, bits, -1)
    return joint.mean(dim=0).reshape(bits, -1, 2)


def best_prior(windows: Tensor) -> Tensor:
    """Return the p that makes the bound least: log p(z_b | before) as `windows` has it."""
    safe = windows + 1e-6  # a window that never occurs would have no p
    return torch.log(safe) - torch.log(safe.sum(dim=2, keepdim=True))


def cross_entropy(windows: Tensor, prior: Tensor) -> Tensor:
    """Return the bound on H(Z), in nats, for log p as in `best_prior`."""
    return -(windows * prior).sum()


# Bits that depend on each other, as a mixture over random logits: what CorrSH needs.
#
#     r = mu + deviation * e1 + U e2,    s_b ~ Bernoulli(sigmoid(r_b)),    e1, e2 standard normal
#
# Given r the bits are independent; over r they are correlated, by the low rank U (bits, rank).


def draw_logits(
    mu: Tensor, deviation: Tensor, factors: Tensor, *, samples: int, generator: torch.Generator
) -> Tensor:
    """Draw r as often as asked for: (samples, documents, bits).

    Args:
        mu: (documents, bits).
        deviation: (documents, bits).
        factors: U, (documents, bits, rank).
        samples: how many for each document.
        generator: of the draws.
    """
    docs, bits, rank = factors.shape
    own = torch.randn((samples, docs, bits), generator=generator, dtype=mu.dtype)
    shared = torch.randn((samples, docs, rank), generator=generator, dtype=mu.dtype)
    return mu + deviation * own + torch.einsum("dbr,sdr->sdb", factors, shared)


def log_probability(bits: Tensor, logits: Tensor) -> Tensor:
    """Return log of the mean over samples of p(s|r), (documents,).

    Where s was drawn from one of these samples, its mean is at least E log q(s), and comes near to it with
    many samples: a divergence made of it is not too small.
    """
    by_sample = (logits * bits - softplus(logits)).sum(dim=2)
    return torch.logsumexp(by_sample, dim=0) - math.log(len(logits))
