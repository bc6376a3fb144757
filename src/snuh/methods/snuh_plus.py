"""SNUH-plus, the product's default: SNUH with a better graph and codes that also explain their neighbours.

The objective of SNUH (`tree_objective`) with four additions, told apart in docs/methods/snuh-plus.md:

- the neighbour graph uses the mean of TF-IDF cosine and cosine in LSA space;
- on a sampled edge, the code of one document must also explain the words of the other, with the same decoder:
  + neighbor_words * N * mean over edges of E_q log p(x_i|z_j);
- the graph is built anew once, a quarter of the similarity then from the means learnt so far;
- some words are hidden from the encoder in each step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from snuh.methods.limits import Limit
from snuh.methods.tree_estimator import Additions, TreeHasher
from snuh.methods.tree_objective import Correlation
from snuh.trees import Sampler


class SNUHPlus(TreeHasher):
    """SNUH with a joined TF-IDF + LSA graph and neighbour reconstruction.

    Example: `SNUHPlus(n_bits=64).fit(X).transform(X)` gives packed codes (docs, 8).
    """

    usual_steps = 2_000
    by_bits: ClassVar[Mapping[str, Mapping[int, float]]] = {
        "beta": {16: 0.1, 32: 0.07, 64: 0.05, 128: 0.03},
        "word_dropout": {16: 0.0, 32: 0.1, 64: 0.2},
        "learning_rate": {16: 0.006, 32: 0.0042, 64: 0.003, 128: 0.0021},
    }
    limits: ClassVar[Mapping[str, Limit]] = {
        **TreeHasher.limits,
        "word_dropout": Limit(below=1, optional=True),
        "neighbor_words": Limit(),
        "refresh": Limit(below=1),
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
        neighbor_words: float = 1.0,  # weight of explaining a neighbour's words
        refresh: float = 0.4,  # share of the epochs after which the graph is built anew, 0 for never
        tau: float = 0.1,  # slope of the sigmoid of the means
        beta: float | None = None,  # weight of all divergences; None: 0.1 at 16 bits to 0.03 at 128
        correlation: Correlation = "optimum",  # the closed form: tighter, and no weights to learn
        word_dropout: float
        | None = None,  # share of words hidden from the encoder; None: 0 at 16 bits to 0.2
        warmup: float = 3.0,  # epochs over which beta grows
        init_range: float = 0.05,  # weights start uniform within +- this
        threshold: Literal["half", "median"] = "half",  # where a mean becomes a 1
        batch_size: int = 128,  # documents, and edges, in a step
        learning_rate: float | None = None,  # of Adam, at the start; None: 0.006 at 16 bits to 0.002 at 128
        decay: bool = True,  # learning rate falls linearly to 0 over the epochs
        epochs: int | None = None,  # at most; None: about 2,000 steps, from 12 to 60 epochs
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
        self.neighbor_words = neighbor_words
        self.refresh = refresh
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
        return Additions(self.neighbor_words, graph_of_lsa=True, refresh=self.refresh)
