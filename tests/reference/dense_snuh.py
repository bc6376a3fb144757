"""SNUH's loss as a page of plain dense torch: what the fast sparse version must equal.

Readable first: dense rows, automatic gradients, log_softmax over the whole vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import log_softmax, softplus


class DenseSNUH(nn.Module):
    def __init__(self, vocabulary: int, bits: int, *, tau: float, beta: float, correlation: str) -> None:
        super().__init__()
        self.mean = nn.Linear(vocabulary, bits)
        self.deviation = nn.Linear(vocabulary, bits)
        self.pair = nn.Linear(2 * vocabulary, bits)
        self.decoder = nn.Linear(bits, vocabulary)
        self.tau, self.beta, self.correlation = tau, beta, correlation

    def q(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return torch.sigmoid(self.mean(x) / self.tau), softplus(self.deviation(x))

    def gamma(self, x_i: Tensor, x_j: Tensor) -> Tensor:
        both = self.pair(torch.cat([x_i, x_j], 1)) + self.pair(torch.cat([x_j, x_i], 1))
        return 2 * torch.sigmoid(both / 2) - 1

    def words(self, x: Tensor, z: Tensor) -> Tensor:
        return ((x > 0) * log_softmax(self.decoder(z), dim=1)).sum(1)

    def pair_divergence(
        self, q_i: tuple[Tensor, Tensor], q_j: tuple[Tensor, Tensor], t: Tensor, g: Tensor
    ) -> Tensor:
        """KL of two correlated Gaussians, straight from the covariance matrices."""
        (mu_i, s_i), (mu_j, s_j) = q_i, q_j
        determinant_q = s_i**2 * s_j**2 * (1 - g**2)
        determinant_p = 1 - t**2
        trace = (s_i**2 + s_j**2 - 2 * t * g * s_i * s_j) / determinant_p
        distance = (mu_i**2 + mu_j**2 - 2 * t * mu_i * mu_j) / determinant_p
        return 0.5 * (trace + distance - 2 + torch.log(determinant_p / determinant_q)).sum(1)

    def single_divergence(self, q: tuple[Tensor, Tensor]) -> Tensor:
        mu, s = q
        return 0.5 * (mu**2 + s**2 - 1 - 2 * torch.log(s)).sum(1)

    def loss(self, x: Tensor, x_j: Tensor, *, noise: Tensor, weight: Tensor, t: Tensor) -> Tensor:
        """The mean over documents x, each with a neighbour x_j, its edge's weight and prior correlation t."""
        q, q_j = self.q(x), self.q(x_j)
        z = q[0] + q[1] * noise
        nodes = self.words(x, z) - self.beta * self.single_divergence(q)
        if self.correlation == "none":
            return -nodes.mean()
        if self.correlation == "encoder":
            g = self.gamma(x, x_j)
        elif self.correlation == "prior":
            g = torch.zeros_like(q[0])
        else:
            a = t * q[1] * q_j[1] / (1 - t**2)
            g = 2 * a / (torch.sqrt(1 + 4 * a**2) + 1)
        edges = self.pair_divergence(q, q_j, t, g) - self.single_divergence(q) - self.single_divergence(q_j)
        return -nodes.mean() + self.beta * (weight * edges).mean()
