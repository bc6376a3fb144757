"""AMMI: codes with maximal information about their document.

Stratos, Wiseman: Learning Discrete Structured Representations by Adversarially Maximizing Mutual Information.
ICML 2020. Maximises the mutual information of document Y and code Z, with more weight on the first term:

    I = w H(Z) - H(Z|Y),    H(Z) bounded by the cross-entropy of a Markov prior, min over the prior

| symbol | here |
|---|---|
| p(z given y) | independent bits with the logits of a linear encoder |
| H(Z given Y) | mean over documents of the sum of the bits' entropies |
| H(Z) | `markov.cross_entropy` of a prior in which a bit depends on the `order` bits before it |
| w | `entropy` |

A bit is 1 if its probability is above 1/2. Departures: for a table of probabilities the inner minimum over
the prior has a closed form, which is computed for each batch, where the paper takes a few gradient steps; the
gradient of the bound at the minimum does not pass through the prior. No words are reconstructed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from snuh.encoder import Activation
from snuh.methods.divergences import bit_entropy
from snuh.methods.gradient import Start
from snuh.methods.limits import Range
from snuh.methods.markov import best_prior, cross_entropy, window_probabilities
from snuh.methods.network_method import Documents, NetworkHasher, NetworkObjective


@dataclass(kw_only=True, eq=False, repr=False)
class AMMI(NetworkHasher):
    """Adversarially maximised mutual information.

    Example: `AMMI(n_bits=64).fit(X).transform(X)` gives packed codes (docs, 8).
    """

    depth: int = 0  # hidden layers; 0: the encoder is linear
    entropy: float = 3.0  # w, weight of the codes' entropy
    order: int = 3  # number of preceding bits that a bit depends on in the prior
    beta: float | None = 1.0  # weight of the entropy of a document's own code
    warmup: float = 0.0  # epochs over which beta grows

    defaults_by_bits: ClassVar[Mapping[str, Mapping[int, float]]] = {"learning_rate": {64: 0.02}}
    ranges: ClassVar[Mapping[str, Range]] = {
        **NetworkHasher.ranges,
        "beta": Range(),
        "entropy": Range(),
        "order": Range(integer=True, below=11),
    }

    def objective(self, start: Start) -> AMMIObjective:
        """Return the objective to minimise."""
        return AMMIObjective(self, start)


class AMMIObjective(NetworkObjective[AMMI]):
    """The negative bound on the weighted information of a batch."""

    activation: ClassVar[Activation] = "sigmoid"
    threshold: ClassVar[Literal["half", "median"]] = "half"

    def __init__(self, method: AMMI, start: Start) -> None:
        super().__init__(method, start, {"logit": method.n_bits})

    def loss(self, batch: Documents, *, epoch: float) -> Mapping[str, Tensor]:
        """H(Z|Y) - w H(Z)."""
        logit = self.network(self.X[batch])["logit"]
        windows = window_probabilities(torch.sigmoid(logit), int(self.method.order))
        prior = best_prior(windows.detach())
        return {
            "own entropy": self.weight(epoch) * bit_entropy(logit).sum(dim=1).mean(),
            "entropy": -self.method.entropy * cross_entropy(windows, prior),
        }

    def decoder(self) -> None:
        """Return None: there is no word decoder."""
        return None
