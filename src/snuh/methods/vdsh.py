"""VDSH: variational deep semantic hashing, the first variational autoencoder of words.

Chaidaroon, Fang: Variational Deep Semantic Hashing for Text Documents. SIGIR 2017. The unsupervised model:

    L = sum_i E_q log p(x_i|z_i) - beta KL(q(z_i|x_i) || N(0, I)),    q(z|x) = N(mu(x), sigma(x)^2)

| symbol | here |
|---|---|
| mu, sigma | heads `mean` and `deviation` of a network with ReLU layers |
| p | `WordDecoder` |

A bit is 1 if its mean is above the training median. Departures: batches instead of single documents, beta
below 1 (at 1 most dimensions collapse to the prior and their bits are noise), softplus for sigma, one hidden
layer instead of two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor
from torch.nn.functional import softplus

from snuh.encoder import Activation
from snuh.methods.gaussians import node_divergence
from snuh.methods.gradient import Start
from snuh.methods.layers import word_sets
from snuh.methods.network_method import Documents, NetworkHasher, NetworkObjective


@dataclass(kw_only=True, eq=False, repr=False)
class VDSH(NetworkHasher):
    """Variational deep semantic hashing.

    Example: `VDSH(n_bits=64).fit(X).transform(X)` gives packed codes (docs, 8).
    """

    defaults_by_bits: ClassVar[Mapping[str, Mapping[int, float]]] = {
        "beta": {64: 0.1},
        "learning_rate": {64: 0.001},
    }

    def objective(self, start: Start) -> VDSHObjective:
        """Return the objective to minimise."""
        return VDSHObjective(self, start)


class VDSHObjective(NetworkObjective[VDSH]):
    """The negative bound of a batch."""

    activation: ClassVar[Activation] = "identity"
    threshold: ClassVar[Literal["half", "median"]] = "median"

    def __init__(self, method: VDSH, start: Start) -> None:
        super().__init__(method, start, {"mean": method.n_bits, "deviation": method.n_bits})
        self.words = self.add_decoder(method.n_bits)

    def loss(self, batch: Documents, *, epoch: float) -> Mapping[str, Tensor]:
        """-E_q log p(x|z) + beta KL, by one sample of z."""
        rows = self.X[batch]
        heads = self.network(rows)
        mu, sigma = heads["mean"], softplus(heads["deviation"])
        z = mu + sigma * self.noise(mu)
        divergence = node_divergence(mu, sigma).sum(dim=1)
        return {
            "words": -self.words.log_likelihood(z, word_sets(rows)).mean(),
            "divergence": self.weight(epoch) * divergence.mean(),
        }
