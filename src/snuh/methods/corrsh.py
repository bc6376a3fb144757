"""CorrSH: NASH with correlated bits in the posterior.

Zheng, Su, Shen, Chen: Generative Semantic Hashing Enhanced via Boltzmann Machines. ACL 2020.

    L = sum_i E_q log p(x_i | s_i + noise e) - beta KL(q(s_i|x_i) || Bernoulli(1/2))
    q(s|x) = E_r prod_b Bernoulli(s_b; sigmoid(r_b)),    r = mu + deviation e1 + U e2

| symbol | here |
|---|---|
| mu, deviation, U | heads `logit`, `deviation` and `factors` (rank columns) |
| KL | log q(s) + bits log 2, log q(s) by `correlated_bits.log_probability` over a few samples of r |
| noise | falls from `noise` to `noise_end` over the epochs |

This is the paper's Boltzmann machine in the form used for training: a Gaussian instead of the partition
function. A bit is 1 if mu is above 0. Departures: one hidden layer; the schedules of noise and beta depend on
the number of epochs instead of fixed numbers of steps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor
from torch.nn.functional import softplus

from snuh.encoder import Activation
from snuh.training.estimator import Range
from snuh.training.gradient import Start, linear_schedule
from snuh.training.kl import draw_logits, log_probability
from snuh.training.layers import draw_bits, word_sets
from snuh.training.network import Documents, NetworkHasher, NetworkObjective


@dataclass(kw_only=True, eq=False, repr=False)
class CorrSH(NetworkHasher):
    """Semantic hashing with correlated bits.

    Example: `CorrSH(n_bits=64).fit(X).transform(X)` gives packed codes (docs, 8).
    """

    rank: int = 10  # columns of U
    samples: int = 10  # of r, for the divergence
    noise: float = 1.0  # initial noise on the bits that the decoder sees
    noise_end: float = 0.5  # final noise

    defaults_by_bits: ClassVar[Mapping[str, Mapping[int, float]]] = {
        "beta": {64: 0.1},
        "learning_rate": {64: 0.003},
    }
    ranges: ClassVar[Mapping[str, Range]] = {
        **NetworkHasher.ranges,
        "rank": Range(above=0, integer=True),
        "samples": Range(above=0, integer=True),
        "noise": Range(),
        "noise_end": Range(),
    }

    def objective(self, start: Start) -> CorrSHObjective:
        """Return the objective to minimise."""
        return CorrSHObjective(self, start)


class CorrSHObjective(NetworkObjective[CorrSH]):
    """The negative bound of a batch."""

    activation: ClassVar[Activation] = "sigmoid"
    threshold: ClassVar[Literal["half", "median"]] = "half"
    spread: ClassVar[float | None] = 0.3  # of the logits: bits differ, but are not certain yet

    def __init__(self, method: CorrSH, start: Start) -> None:
        bits = method.n_bits
        heads = {"logit": bits, "deviation": bits, "factors": bits * int(method.rank)}
        super().__init__(method, start, heads)
        self.words = self.add_decoder(bits)

    def loss(self, batch: Documents, *, epoch: float) -> Mapping[str, Tensor]:
        """-E_q log p(x|s + noise e) + beta (log q(s) + bits log 2), by one sample of s and e."""
        rows = self.X[batch]
        heads = self.network(rows)
        rank = int(self.method.rank)
        factors = torch.tanh(heads["factors"]).reshape(len(batch), -1, rank) / rank
        logits = draw_logits(
            heads["logit"],
            softplus(heads["deviation"]),
            factors,
            samples=int(self.method.samples),
            generator=self.generator,
        )
        bits = draw_bits(torch.sigmoid(logits[0]), self.generator)
        divergence = log_probability(bits, logits) + self.method.n_bits * math.log(2.0)
        noise = linear_schedule(epoch, self.epochs, start=self.method.noise, end=self.method.noise_end)
        return {
            "words": -self.words.log_likelihood(bits + noise * self.noise(bits), word_sets(rows)).mean(),
            "divergence": self.weight(epoch) * divergence.mean(),
        }
