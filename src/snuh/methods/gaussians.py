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

import torch
from torch import Tensor


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
