"""SNUH, the paper's method: words explained by codes, codes correlated along trees of a neighbour graph.

Ou, Su, Yu, Liu, Wang, Zhao, Chen, Zheng: Integrating Semantics and Neighborhood Information with Graph-Driven
Generative Models for Document Retrieval. ACL 2021. The objective is in `tree_objective`; docs/methods/snuh.md
has the departures and what the released code does otherwise.

Departures from the paper: the codes start balanced and the decoder at the words' frequencies, beta grows over
the first epochs and the learning rate falls over all of them (codes come alive on every corpus, and in fewer
epochs); the edges of a batch are drawn from its own documents; the epoch is chosen without labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from snuh.methods.tree_estimator import Additions, TreeHasher
from snuh.methods.tree_objective import Correlation
from snuh.trees import Sampler


class SNUH(TreeHasher):
    """Semantics-Neighborhood Unified Hashing as the paper describes it.

    Example: `SNUH(n_bits=64).fit(X).transform(X)` gives packed codes (docs, 8).
    """

    usual_steps = 1_500
    by_bits: ClassVar[Mapping[str, Mapping[int, float]]] = {
        "beta": {16: 0.1, 32: 0.09, 64: 0.08, 128: 0.06},
        "learning_rate": {16: 0.003, 32: 0.003, 64: 0.002, 128: 0.0015},
    }

    def __init__(
        self,
        *,
        n_bits: int = 64,  # length of the codes
        neighbors: int = 20,  # K, neighbours of a document in the graph
        trees: int = 20,  # M, spanning forests
        sampler: Sampler = "depth-first",  # "star": the printed Algorithm 2
        alpha: float = 0.1,  # how much the next neighbour of a tree is drawn at random
        affinity: Literal["constant", "gaussian"] = "constant",  # "gaussian": Eq. (5)
        sigma: float = 1.0,  # width of the Gaussian affinity
        strength: float = 0.99,  # lambda, prior correlation of neighbours
        tau: float = 0.1,  # slope of the sigmoid of the means
        beta: float | None = None,  # weight of all divergences; None: 0.1 at 16 bits to 0.06 at 128
        correlation: Correlation = "encoder",  # "prior": SNUH_prior, "none": SNUH_ind
        word_dropout: float = 0.0,  # share of words hidden from the encoder in a step
        warmup: float = 3.0,  # epochs over which beta grows
        init_range: float = 0.05,  # weights start uniform within +- this
        threshold: Literal["half", "median"] = "half",  # where a mean becomes a 1
        batch_size: int = 128,  # documents, and edges, in a step
        learning_rate: float | None = None,  # of Adam, at the start; None: 0.003 at 16 bits to 0.0015 at 128
        decay: bool = True,  # learning rate falls linearly to 0 over the epochs
        epochs: int | None = None,  # at most; None: about 1,500 steps, from 12 to 60 epochs
        patience: int = 10,  # epochs without a better held-out score
        clip: float = 10.0,  # largest norm of a gradient
        seed: int = 0,  # of everything random
    ) -> None:
        self.n_bits = n_bits
        self.neighbors = neighbors
        self.trees = trees
        self.sampler = sampler
        self.alpha = alpha
        self.affinity = affinity
        self.sigma = sigma
        self.strength = strength
        self.tau = tau
        self.beta = beta
        self.correlation = correlation
        self.word_dropout = word_dropout
        self.warmup = warmup
        self.init_range = init_range
        self.threshold = threshold
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.decay = decay
        self.epochs = epochs
        self.patience = patience
        self.clip = clip
        self.seed = seed

    def _additions(self) -> Additions:
        return Additions()
