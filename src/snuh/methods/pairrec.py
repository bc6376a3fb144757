"""PairRec: a document's code and its neighbour's code must both explain the document.

Hansen, Hansen, Simonsen, Alstrup, Lioma: Unsupervised Semantic Hashing with Pairwise Reconstruction. SIGIR
2020.

    L = sum_i E_q [ log p(x_i | s_i + noise e) + log p(x_i | s_j + noise e') ]
        - beta KL(q(s_i|x_i) || Bernoulli(1/2))

| symbol | here |
|---|---|
| j | one of the `neighbors` documents whose spectral bits are nearest to those of i |
| q(s given x) | head `logit` of a network whose input is scaled by word importance; s by `draw_bits` |
| p | a word decoder whose embedding is scaled by the same importance |
| noise | falls from `noise` to 0 over the epochs |

A bit is 1 if its probability is above 1/2. Departures: one hidden layer; the spectral bits of
`spectral` instead of those of self-taught hashing.
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
from snuh.training.gradient import Start, linear_schedule
from snuh.training.kl import fair_bit_divergence
from snuh.training.layers import draw_bits, word_sets
from snuh.training.network import Documents, NetworkHasher, NetworkObjective, weak_neighbors


@dataclass(kw_only=True, eq=False, repr=False)
class PairRec(NetworkHasher):
    """Semantic hashing with pairwise reconstruction.

    Example: `PairRec(n_bits=64).fit(X).transform(X)` gives packed codes (docs, 8).
    """

    dropout: float = 0.2  # fraction of the hidden units dropped in a step
    beta: float | None = 0.0  # weight of the divergence from the prior
    neighbors: int = 25  # nearest documents that the second of a pair is drawn from
    noise: float = 1.0  # initial noise on the bits that the decoder sees

    defaults_by_bits: ClassVar[Mapping[str, Mapping[int, float]]] = {"learning_rate": {64: 0.003}}
    ranges: ClassVar[Mapping[str, Range]] = {
        **NetworkHasher.ranges,
        "beta": Range(),
        "neighbors": Range(above=0, integer=True),
        "noise": Range(),
    }

    def _check_size(self, docs: int) -> None:
        check_neighbors(self.neighbors, docs)

    def objective(self, start: Start) -> PairRecObjective:
        """Return the objective to minimise."""
        return PairRecObjective(self, start)


class PairRecObjective(NetworkObjective[PairRec]):
    """The negative bound of a batch of pairs."""

    activation: ClassVar[Activation] = "sigmoid"
    threshold: ClassVar[Literal["half", "median"]] = "half"
    spread: ClassVar[float | None] = 0.3  # of the logits: bits differ, but are not certain yet

    def __init__(self, method: PairRec, start: Start) -> None:
        self.importance = torch.ones(start.data.X.shape[1], requires_grad=True)
        super().__init__(method, start, {"logit": method.n_bits}, importance=self.importance)
        self.words = self.add_decoder(method.n_bits, batches=2)
        self.parameters.append(self.importance)
        self.neighbors, _ = weak_neighbors(start, k=int(method.neighbors))

    def loss(self, batch: Documents, *, epoch: float) -> Mapping[str, Tensor]:
        """-E_q log p(x_i|s_i) - E_q log p(x_i|s_j) + beta KL, by one sample of j, s and e."""
        choice = self.rng.integers(0, self.neighbors.shape[1], len(batch))
        rows = self.X[np.concatenate([batch, self.neighbors[batch, choice]])]
        logit = self.network(rows)["logit"]
        bits = draw_bits(torch.sigmoid(logit), self.generator)
        z = bits + linear_schedule(epoch, self.epochs, start=self.method.noise, end=0.0) * self.noise(bits)
        words = word_sets(self.X[np.concatenate([batch, batch])])
        embedding = self.words.embedding * self.importance[:, None]
        own, others = self.words.log_likelihood(z, words, embedding=embedding).chunk(2)
        divergence = fair_bit_divergence(logit[: len(batch)]).sum(dim=1)
        return {
            "words": -own.mean(),
            "pair words": -others.mean(),
            "divergence": self.weight(epoch) * divergence.mean(),
        }

    def decoder(self) -> npt.NDArray[np.float32]:
        """Return the word weights of each bit (terms, bits)."""
        weights: npt.NDArray[np.float32] = self.words.array() * self.importance.detach().numpy()[:, None]
        return weights
