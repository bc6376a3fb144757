"""GMSH: VDSH with a mixture of Gaussians as its prior.

Dong, Su, Shen, Chen: Document Hashing with Mixture-Prior Generative Models. EMNLP 2019.

    L = sum_i E_q log p(x_i|z_i) - beta ( KL(q(c|x_i) || pi) + sum_c q(c|x_i) KL(q(z|x_i) || N(m_c, s_c^2)) )

| symbol | here |
|---|---|
| q(z given x) = N(mu, sigma^2) | heads `mean` and `deviation` |
| q(c given x) | head `component`, a softmax |
| pi, m_c | `Mixture` |
| s_c | softplus of `spreads` |

A bit is 1 if its mean is above the training median. Departures: softplus for sigma and s_c, beta below 1, and
a linear encoder, which has a better held-out score: a hidden layer overfits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor
from torch.nn.functional import softplus

from snuh.encoder import Activation
from snuh.methods.divergences import gaussian_divergence, mixture_divergence
from snuh.methods.gradient import Start
from snuh.methods.layers import word_sets
from snuh.methods.limits import Range
from snuh.methods.mixtures import Mixture
from snuh.methods.network_method import Documents, NetworkHasher, NetworkObjective


@dataclass(kw_only=True, eq=False, repr=False)
class GMSH(NetworkHasher):
    """Gaussian-mixture semantic hashing.

    Example: `GMSH(n_bits=64).fit(X).transform(X)` gives packed codes (docs, 8).
    """

    depth: int = 0  # hidden layers; 0: the encoder is linear
    components: int = 20  # of the mixture

    defaults_by_bits: ClassVar[Mapping[str, Mapping[int, float]]] = {
        "beta": {64: 0.1},
        "learning_rate": {64: 0.002},
    }
    ranges: ClassVar[Mapping[str, Range]] = {
        **NetworkHasher.ranges,
        "components": Range(above=0, integer=True),
    }

    def objective(self, start: Start) -> GMSHObjective:
        """Return the objective to minimise."""
        return GMSHObjective(self, start)


class GMSHObjective(NetworkObjective[GMSH]):
    """The negative bound of a batch."""

    activation: ClassVar[Activation] = "identity"
    threshold: ClassVar[Literal["half", "median"]] = "median"

    def __init__(self, method: GMSH, start: Start) -> None:
        bits, components = method.n_bits, int(method.components)
        super().__init__(method, start, {"mean": bits, "deviation": bits, "component": components})
        self.words = self.add_decoder(bits)
        self.prior = Mixture(components, bits, generator=self.generator)
        self.spreads = torch.full((components, bits), 0.5413).requires_grad_()  # softplus of it is 1
        self.parameters += [*self.prior.parameters, self.spreads]

    def loss(self, batch: Documents, *, epoch: float) -> Mapping[str, Tensor]:
        """-E_q log p(x|z) + beta (KL of the component + expected KL within it), by one sample of z."""
        rows = self.X[batch]
        heads = self.network(rows)
        mu, sigma = heads["mean"], softplus(heads["deviation"])
        z = mu + sigma * self.noise(mu)
        within = gaussian_divergence(
            mu[:, None], sigma[:, None], self.prior.centers, softplus(self.spreads)
        ).sum(dim=2)
        component = torch.log_softmax(heads["component"], dim=1)
        divergence = mixture_divergence(component, self.prior.log_weights, within)
        return {
            "words": -self.words.log_likelihood(z, word_sets(rows)).mean(),
            "divergence": self.weight(epoch) * divergence.mean(),
        }
