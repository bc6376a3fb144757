"""NASH: neural architecture for semantic hashing, with bits as latent variables.

Shen, Su, Chapfuwa, Wang, Wang, Carin, Henao: NASH: Toward End-to-End Neural Architecture for Generative
Semantic Hashing. ACL 2018. The unsupervised model with data-dependent noise (NASH-DN):

    L = sum_i E_q log p(x_i | s_i + sigma(x_i) e) - beta KL(q(s_i|x_i) || Bernoulli(1/2)),    s ~ q(s|x)

| symbol | here |
|---|---|
| q(s) = Bernoulli(sigmoid(l)) | head `logit` |
| s | `draw_bits`, with the straight-through gradient |
| sigma(x) | head `noise`: noise on the bits that the decoder sees, e standard normal |

A bit is 1 if its probability is above 1/2. Departures: sigma is the softplus of a head that shares the
hidden layer, instead of a separate network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor
from torch.nn.functional import softplus

from snuh.encoder import Activation
from snuh.training.gradient import Start
from snuh.training.kl import fair_bit_divergence
from snuh.training.layers import draw_bits, word_sets
from snuh.training.network import Documents, NetworkHasher, NetworkObjective


@dataclass(kw_only=True, eq=False, repr=False)
class NASH(NetworkHasher):
    """Neural architecture for semantic hashing.

    Example: `NASH(n_bits=64).fit(X).transform(X)` gives packed codes (docs, 8).
    """

    defaults_by_bits: ClassVar[Mapping[str, Mapping[int, float]]] = {
        "beta": {64: 0.1},
        "learning_rate": {64: 0.003},
    }

    def objective(self, start: Start) -> NASHObjective:
        """Return the objective to minimise."""
        return NASHObjective(self, start)


class NASHObjective(NetworkObjective[NASH]):
    """The negative bound of a batch."""

    activation: ClassVar[Activation] = "sigmoid"
    threshold: ClassVar[Literal["half", "median"]] = "half"
    spread: ClassVar[float | None] = 0.3  # of the logits: bits differ, but are not certain yet

    def __init__(self, method: NASH, start: Start) -> None:
        super().__init__(method, start, {"logit": method.n_bits, "noise": method.n_bits})
        self.words = self.add_decoder(method.n_bits)

    def loss(self, batch: Documents, *, epoch: float) -> Mapping[str, Tensor]:
        """-E_q log p(x|s + sigma e) + beta KL, by one sample of s and e."""
        rows = self.X[batch]
        heads = self.network(rows)
        bits = draw_bits(torch.sigmoid(heads["logit"]), self.generator)
        z = bits + softplus(heads["noise"]) * self.noise(bits)
        divergence = fair_bit_divergence(heads["logit"]).sum(dim=1)
        return {
            "words": -self.words.log_likelihood(z, word_sets(rows)).mean(),
            "divergence": self.weight(epoch) * divergence.mean(),
        }
