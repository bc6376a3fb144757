"""BMSH: NASH with a mixture of Bernoulli distributions as its prior.

Dong, Su, Shen, Chen: Document Hashing with Mixture-Prior Generative Models. EMNLP 2019.

    L = sum_i E_q log p(x_i | s_i + sigma(x_i) e)
        - beta ( KL(q(c|x_i) || pi) + sum_c q(c|x_i) KL(q(s|x_i) || Bernoulli(g_c)) )

| symbol | here |
|---|---|
| q(s given x) | head `logit`; s by `draw_bits` |
| sigma(x) | head `noise`; e standard normal |
| q(c given x) | head `component`, a softmax |
| pi, logits of g_c | `Mixture` |

A bit is 1 if its probability is above 1/2. Departures: sigma is the softplus of a head.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor
from torch.nn.functional import softplus

from snuh.encoder import Activation
from snuh.training.estimator import Range
from snuh.training.gradient import Start
from snuh.training.kl import Mixture, bit_divergence, mixture_divergence
from snuh.training.layers import draw_bits, word_sets
from snuh.training.network import Documents, NetworkHasher, NetworkObjective


@dataclass(kw_only=True, eq=False, repr=False)
class BMSH(NetworkHasher):
    """Bernoulli-mixture semantic hashing.

    Example: `BMSH(n_bits=64).fit(X).transform(X)` gives packed codes (docs, 8).
    """

    components: int = 20  # of the mixture

    defaults_by_bits: ClassVar[Mapping[str, Mapping[int, float]]] = {
        "beta": {64: 0.1},
        "learning_rate": {64: 0.003},
    }
    ranges: ClassVar[Mapping[str, Range]] = {
        **NetworkHasher.ranges,
        "components": Range(above=0, integer=True),
    }

    def objective(self, start: Start) -> BMSHObjective:
        """Return the objective to minimise."""
        return BMSHObjective(self, start)


class BMSHObjective(NetworkObjective[BMSH]):
    """The negative bound of a batch."""

    activation: ClassVar[Activation] = "sigmoid"
    threshold: ClassVar[Literal["half", "median"]] = "half"
    spread: ClassVar[float | None] = 0.3  # of the logits: bits differ, but are not certain yet

    def __init__(self, method: BMSH, start: Start) -> None:
        bits, components = method.n_bits, int(method.components)
        super().__init__(method, start, {"logit": bits, "noise": bits, "component": components})
        self.words = self.add_decoder(bits)
        self.prior = Mixture(components, bits, generator=self.generator)
        self.parameters += self.prior.parameters

    def loss(self, batch: Documents, *, epoch: float) -> Mapping[str, Tensor]:
        """-E_q log p(x|z) + beta (KL of the component + expected KL within it), by one sample of s and e."""
        rows = self.X[batch]
        heads = self.network(rows)
        bits = draw_bits(torch.sigmoid(heads["logit"]), self.generator)
        z = bits + softplus(heads["noise"]) * self.noise(bits)
        within = bit_divergence(heads["logit"][:, None], self.prior.centers).sum(dim=2)
        component = torch.log_softmax(heads["component"], dim=1)
        divergence = mixture_divergence(component, self.prior.log_weights, within)
        return {
            "words": -self.words.log_likelihood(z, word_sets(rows)).mean(),
            "divergence": self.weight(epoch) * divergence.mean(),
        }
