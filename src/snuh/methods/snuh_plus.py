"""SNUH-plus, the default method: SNUH with a better graph and codes that also explain their neighbours.

The objective of SNUH (`tree_objective`) with five additions (docs/methods/snuh-plus.md):

- the neighbour graph uses the mean of TF-IDF cosine and cosine in LSA space;
- on a sampled edge, the code of one document must also explain the words of the other, with the same decoder:
  + neighbor_words * N * mean over edges of E_q log p(x_i|z_j);
- the graph is rebuilt once, with a quarter of the similarity from the means learnt so far;
- some words are hidden from the encoder in each step;
- the encoder is initialised by ITQ on LSA, so that the codes are good from the first step on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from scipy import sparse

from snuh.training.estimator import Range
from snuh.training.tree_estimator import TreeHasher
from snuh.training.tree_objective import Correlation, MeansStart, mean_words

LONG_DOCUMENT = 80  # distinct words from which on the learning rate is not reduced


@dataclass(kw_only=True, eq=False, repr=False)
class SNUHPlus(TreeHasher):
    """SNUH with a hybrid TF-IDF + LSA graph and neighbour reconstruction.

    Example: `SNUHPlus(n_bits=64).fit(X).transform(X)` gives packed codes (docs, 8).
    """

    neighbors: int | None = 8  # K, per document; None: 20, less below 2,000 documents
    correlation: Correlation = "optimum"  # the closed form: a tighter bound without extra weights
    word_dropout: float | None = None  # fraction of words hidden from the encoder; None: 0 at 16 bits to 0.2
    start: MeansStart = "itq"  # initial weights of the means: ITQ on LSA, or "random"
    lsa_graph: bool = True  # whether LSA cosine is half of the graph's similarity
    neighbor_words: float = 10.0  # weight of explaining a neighbour's words
    refresh: float = 0.4  # fraction of the epochs after which the graph is rebuilt, 0 for never

    defaults_by_bits: ClassVar[Mapping[str, Mapping[int, float]]] = {
        "beta": {16: 0.1, 32: 0.07, 64: 0.05, 128: 0.03},
        "word_dropout": {16: 0.0, 32: 0.1, 64: 0.2},
        "learning_rate": {16: 0.006, 32: 0.0042, 64: 0.003, 128: 0.0021},
    }
    ranges: ClassVar[Mapping[str, Range]] = {
        **TreeHasher.ranges,
        "word_dropout": Range(below=1, optional=True),
        "neighbor_words": Range(),
        "refresh": Range(below=1),
    }
    choices: ClassVar[Mapping[str, tuple[object, ...]]] = {**TreeHasher.choices, "lsa_graph": (True, False)}

    def rate_factor(self, X: sparse.csr_matrix) -> float:
        """Train more slowly on short documents: (mean number of words / LONG_DOCUMENT)^(1/4), at most 1.

        Adam moves the weights of rare words as fast as those of frequent ones. In a document of many words
        their errors average out; a code of five words follows each of them.
        """
        return float(min(1.0, (mean_words(X) / LONG_DOCUMENT) ** 0.25))
