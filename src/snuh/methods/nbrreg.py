"""NbrReg: VDSH whose codes must also explain the words of the neighbourhood.

Chaidaroon, Ebesu, Fang: Deep Semantic Text Hashing with Weak Supervision. SIGIR 2018.

    L = sum_i E_q [ log p(x_i|z_i) + log p'(n_i|z_i) ] - beta KL(q(z_i|x_i) || N(0, I))

| symbol | here |
|---|---|
| q(z given x) | heads `mean` and `deviation` |
| n_i | the distinct words of the nearest training documents, all together |
| p, p' | two word decoders with weights of their own |

A bit is 1 where its mean is above the training median. Departures: neighbours by the cosine of the rows
instead of BM25 (rows of features are all that a method sees), softplus for sigma, one hidden layer, beta
below 1 as for VDSH.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np
from scipy import sparse
from torch import Tensor
from torch.nn.functional import softplus

from snuh.encoder import Activation
from snuh.graph import Search, find_unique_rows, nearest_neighbors
from snuh.progress import stage_callback
from snuh.training.estimator import Limit, check_neighbors
from snuh.training.gradient import Start
from snuh.training.kl import node_divergence
from snuh.training.layers import word_sets
from snuh.training.network import Documents, NetworkHasher, NetworkObjective


@dataclass(kw_only=True, eq=False, repr=False)
class NbrReg(NetworkHasher):
    """VDSH with a second decoder for the neighbours' words.

    Example: `NbrReg(n_bits=64).fit(X).transform(X)` gives packed codes (docs, 8).
    """

    neighbors: int = 20  # documents whose words are explained along
    graph: Search = "auto"  # how they are searched for; "auto": "exact" or, for many, "approximate"

    by_bits: ClassVar[Mapping[str, Mapping[int, float]]] = {
        "beta": {64: 0.1},
        "learning_rate": {64: 0.001},
    }
    limits: ClassVar[Mapping[str, Limit]] = {
        **NetworkHasher.limits,
        "neighbors": Limit(above=0, whole=True),
    }
    choices: ClassVar[Mapping[str, tuple[object, ...]]] = {**NetworkHasher.choices, "graph": get_args(Search)}

    def _check_size(self, docs: int) -> None:
        check_neighbors(self.neighbors, docs)

    def _objective(self, start: Start) -> NbrRegObjective:
        return NbrRegObjective(self, start)


class NbrRegObjective(NetworkObjective[NbrReg]):
    """The negative bound of a batch."""

    activation: ClassVar[Activation] = "identity"
    threshold: ClassVar[Literal["half", "median"]] = "median"

    def __init__(self, method: NbrReg, start: Start) -> None:
        super().__init__(method, start, {"mean": method.n_bits, "deviation": method.n_bits})
        self.words = self.add_decoder(method.n_bits)
        self.neighbor_words = self.add_decoder(method.n_bits)
        self.neighbors = _neighbor_matrix(start, k=int(method.neighbors), search=method.graph)

    def loss(self, batch: Documents, *, epoch: float) -> Mapping[str, Tensor]:
        """-E_q log p(x|z) - E_q log p'(n|z) + beta KL, by one sample of z."""
        rows = self.X[batch]
        heads = self.network(rows)
        mu, sigma = heads["mean"], softplus(heads["deviation"])
        z = mu + sigma * self.noise(mu)
        around = sparse.csr_matrix(
            self.neighbors[batch] @ self.X
        )  # positive where any neighbour has the word
        divergence = node_divergence(mu, sigma).sum(dim=1)
        return {
            "words": -self.words.log_likelihood(z, word_sets(rows)).mean(),
            "neighbor words": -self.neighbor_words.log_likelihood(z, word_sets(around)).mean(),
            "divergence": self.weight(epoch) * divergence.mean(),
        }


def _neighbor_matrix(start: Start, *, k: int, search: Search) -> sparse.csr_matrix:
    """Return a 1 for each neighbour (documents, documents); copies have the neighbours of the first."""
    X, unique = start.data.X, find_unique_rows(start.data.X)
    report = stage_callback(start.on_progress, "graph")
    nearest = nearest_neighbors(X, k=k, search=search, rng=start.rng, on_progress=report)
    start.data.graphs.append(nearest.summary)
    found = nearest.rows[unique.first[unique.inverse]]
    is_there = found.ravel() >= 0
    heads = np.repeat(np.arange(len(found)), k)[is_there]
    ones = np.ones(len(heads), dtype=np.float32)
    return sparse.csr_matrix((ones, (heads, found.ravel()[is_there])), shape=(len(found), len(found)))
