"""WISH: each bit switches a topic on, and the decoder sees the sum of the topics.

Ye, Manotumruksa, Yilmaz: Unsupervised Few-Bits Semantic Hashing with Implicit Topics Modeling. Findings of
EMNLP 2020.

    L = sum_i E_q log p(x_i | s_i T) - beta KL(q(s_i|x_i) || Bernoulli(1/2)) - alpha |T T' - I|^2

| symbol | here |
|---|---|
| q(s given x) | head `logit`; s by `draw_bits` |
| T | `topics` (bits, dims): one topic vector per bit, kept orthogonal by alpha |

A bit is 1 if its probability is above 1/2. Departures: one hidden layer; topic vectors with at least as
many dimensions as bits, since otherwise they cannot be orthogonal.
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
from snuh.training.estimator import Range
from snuh.training.gradient import Start
from snuh.training.kl import fair_bit_divergence
from snuh.training.layers import draw_bits, word_sets
from snuh.training.network import Documents, NetworkHasher, NetworkObjective


@dataclass(kw_only=True, eq=False, repr=False)
class WISH(NetworkHasher):
    """Few-bits semantic hashing with implicit topics.

    Example: `WISH(n_bits=16).fit(X).transform(X)` gives packed codes (docs, 2).
    """

    dims: int = 100  # of a topic vector; at least the number of bits
    alpha: float = 1.0  # weight of the orthogonality of the topics

    defaults_by_bits: ClassVar[Mapping[str, Mapping[int, float]]] = {
        "beta": {64: 0.1},
        "learning_rate": {64: 0.003},
    }
    ranges: ClassVar[Mapping[str, Range]] = {
        **NetworkHasher.ranges,
        "dims": Range(above=0, integer=True),
        "alpha": Range(),
    }

    def objective(self, start: Start) -> WISHObjective:
        """Return the objective to minimise."""
        return WISHObjective(self, start)


class WISHObjective(NetworkObjective[WISH]):
    """The negative bound of a batch."""

    activation: ClassVar[Activation] = "sigmoid"
    threshold: ClassVar[Literal["half", "median"]] = "half"
    spread: ClassVar[float | None] = 0.3  # of the logits: bits differ, but are not certain yet

    def __init__(self, method: WISH, start: Start) -> None:
        super().__init__(method, start, {"logit": method.n_bits})
        dims = max(int(method.dims), method.n_bits)
        self.words = self.add_decoder(dims)
        # Initial topics have a length of about 1.
        self.topics = dims**-0.5 * torch.randn((method.n_bits, dims), generator=self.generator)
        self.parameters.append(self.topics.requires_grad_())

    def loss(self, batch: Documents, *, epoch: float) -> Mapping[str, Tensor]:
        """-E_q log p(x|s T) + beta KL + alpha |T T' - I|^2, by one sample of s."""
        rows = self.X[batch]
        logit = self.network(rows)["logit"]
        bits = draw_bits(torch.sigmoid(logit), self.generator)
        divergence = fair_bit_divergence(logit).sum(dim=1)
        gram_error = self.topics @ self.topics.t() - torch.eye(len(self.topics))
        return {
            "words": -self.words.log_likelihood(bits @ self.topics, word_sets(rows)).mean(),
            "divergence": self.weight(epoch) * divergence.mean(),
            "angles": self.method.alpha * gram_error.square().sum(),
        }

    def decoder(self) -> npt.NDArray[np.float32]:
        """Return the word weights of each bit's topic (terms, bits)."""
        weights: npt.NDArray[np.float32] = self.words.array() @ self.topics.detach().numpy().T
        return weights
