"""Closed-form divergences and entropies of bits, Gaussians and mixtures.

Bits are given by their logits l (q = sigmoid(l)), which is stable near q = 0 and 1. All functions return one
value per document and bit, or per document if they sum over components. Each has a test against enumeration
or samples in tests/maths. For a standard normal prior see `gaussians.node_divergence`.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import softplus


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
