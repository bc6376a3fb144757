"""RBSH: a word decoder and a ranking loss with weak supervision.

Hansen, Hansen, Simonsen, Alstrup, Lioma: Unsupervised Neural Generative Semantic Hashing. SIGIR 2019.

    L = sum over d [ sum over d, d1, d2 of E_q log p(x | s + noise e)
                     - beta KL(q(s_d|x_d) || Bernoulli(1/2)) - rank R ]
    R = max(0, 1 - (D(d, d2) - D(d, d1)))   if d1 is nearer to d than d2 by the spectral bits,
        |D(d, d1) - D(d, d2)|               if both are equally near,      D(d, d') = |s - s'|^2

| symbol | here |
|---|---|
| d1, d2 | two of the `neighbors` documents whose spectral bits are nearest to those of d |
| q(s given x) | head `logit` of a network whose input is scaled by word importance; s by `draw_bits` |
| p | a word decoder whose embedding is a linear map of a word table, scaled by the same importance |
| noise | falls from `noise` to `noise_end` over the epochs |
| rank | weight of the ranking, grows over the epochs |

A bit is 1 if its probability is above 1/2. Departures: one hidden layer; schedules that depend on the
number of epochs; the spectral bits of `spectral` instead of those of self-taught hashing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from snuh.encoder import Activation
from snuh.training.estimator import Range, check_neighbors
from snuh.training.gradient import Start, linear_schedule, linear_warmup
from snuh.training.kl import fair_bit_divergence
from snuh.training.layers import draw_bits, word_sets
from snuh.training.network import Documents, NetworkHasher, NetworkObjective, weak_neighbors


@dataclass(kw_only=True, eq=False, repr=False)
class RBSH(NetworkHasher):
    """Ranking-based semantic hashing.

    Example: `RBSH(n_bits=64).fit(X).transform(X)` gives packed codes (docs, 8).
    """

    beta: float | None = 0.04  # weight of the divergence from the prior
    neighbors: int = 100  # nearest documents that triplets are drawn from
    dims: int = 300  # of the word table
    rank: float = 5.0  # final weight of the ranking
    noise: float = 1.0  # initial noise on the bits that the decoder sees
    noise_end: float = 0.0  # final noise

    defaults_by_bits: ClassVar[Mapping[str, Mapping[int, float]]] = {"learning_rate": {64: 0.003}}
    ranges: ClassVar[Mapping[str, Range]] = {
        **NetworkHasher.ranges,
        "beta": Range(),
        "neighbors": Range(above=1, integer=True),
        "dims": Range(above=0, integer=True),
        "rank": Range(),
        "noise": Range(),
        "noise_end": Range(),
    }

    def _check_size(self, docs: int) -> None:
        check_neighbors(self.neighbors, docs)

    def objective(self, start: Start) -> RBSHObjective:
        """Return the objective to minimise."""
        return RBSHObjective(self, start)


class RBSHObjective(NetworkObjective[RBSH]):
    """The negative bound of a batch of triplets, and the ranking loss."""

    activation: ClassVar[Activation] = "sigmoid"
    threshold: ClassVar[Literal["half", "median"]] = "half"
    spread: ClassVar[float | None] = 0.3  # of the logits: bits differ, but are not certain yet

    def __init__(self, method: RBSH, start: Start) -> None:
        self.importance = torch.ones(start.data.X.shape[1], requires_grad=True)
        super().__init__(method, start, {"logit": method.n_bits}, importance=self.importance)
        self.words = self.add_decoder(int(method.dims), batches=3)
        size = method.dims**-0.5
        self.map = size * torch.randn((method.n_bits, int(method.dims)), generator=self.generator)
        self.parameters += [self.importance, self.map.requires_grad_()]
        self.neighbors, self.distances = weak_neighbors(start, k=int(method.neighbors))

    def loss(self, batch: Documents, *, epoch: float) -> Mapping[str, Tensor]:
        """The words of all three, beta KL, and the ranking, by one sample of d1, d2, s and e."""
        docs = len(batch)
        choices = self.rng.integers(0, self.neighbors.shape[1], (2, docs))
        rows = self.X[np.concatenate([batch, *self.neighbors[batch, choices]])]
        logit = self.network(rows)["logit"]
        bits = draw_bits(torch.sigmoid(logit), self.generator)
        noise = linear_schedule(epoch, self.epochs, start=self.method.noise, end=self.method.noise_end)
        z = bits + noise * self.noise(bits)
        embedding = (self.words.embedding @ self.map.t()) * self.importance[:, None]
        explained = self.words.log_likelihood(z, word_sets(rows), embedding=embedding)
        first, second = self.distances[batch, choices]
        ranking = ranking_loss(bits, torch.from_numpy(np.sign(second - first)).float())
        weight = self.method.rank * linear_warmup(epoch, self.epochs)
        return {
            "words": -explained.sum() / docs,
            "divergence": self.weight(epoch) * fair_bit_divergence(logit[:docs]).sum() / docs,
            "ranking": weight * ranking.mean(),
        }

    def decoder(self) -> npt.NDArray[np.float32]:
        """Return the word weights of each bit (terms, bits)."""
        words = self.words.array() * self.importance.detach().numpy()[:, None]
        weights: npt.NDArray[np.float32] = words @ self.map.detach().numpy().T
        return weights


def ranking_loss(bits: Tensor, nearer: Tensor) -> Tensor:
    """Return R of each triplet.

    Args:
        bits: of all d, then all d1, then all d2, (3 triplets, bits).
        nearer: 1 if d1 is nearer to d than d2 by the spectral bits, -1 if d2 is, 0 if they tie.
    """
    d, d1, d2 = bits.chunk(3)
    gap = (d - d2).square().sum(dim=1) - (d - d1).square().sum(dim=1)
    return torch.where(nearer == 0, gap.abs(), torch.relu(1.0 - nearer * gap))
