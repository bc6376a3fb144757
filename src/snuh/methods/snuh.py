"""SNUH, the paper's method: codes explain words and are correlated along trees of a neighbour graph.

Ou, Su, Yu, Liu, Wang, Zhao, Chen, Zheng: Integrating Semantics and Neighborhood Information with Graph-Driven
Generative Models for Document Retrieval. ACL 2021. The objective is in `tree_objective`; docs/methods/snuh.md
lists the departures and the differences from the released code.

Departures from the paper: the codes start balanced and the decoder at the words' frequencies, beta grows over
the first epochs and the learning rate decays over all of them (which avoids dead codes on every corpus and
takes fewer epochs); in a corpus of short documents the words weigh more; each document of a batch is paired
with one of its own edges; the epoch is selected without labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from snuh.training.tree_estimator import TreeHasher


@dataclass(kw_only=True, eq=False, repr=False)
class SNUH(TreeHasher):
    """Semantics-Neighborhood Unified Hashing as the paper describes it.

    Example: `SNUH(n_bits=64).fit(X).transform(X)` gives packed codes (docs, 8).
    """

    default_steps: ClassVar[int] = 1_500
    defaults_by_bits: ClassVar[Mapping[str, Mapping[int, float]]] = {
        "beta": {16: 0.1, 32: 0.09, 64: 0.08, 128: 0.06},
        "learning_rate": {16: 0.003, 32: 0.003, 64: 0.002, 128: 0.0015},
    }
