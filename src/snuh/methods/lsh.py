"""LSH: random hyperplanes, without learning.

Charikar: Similarity Estimation Techniques from Rounding Algorithms. STOC 2002.

    bit_j(x) = [ w_j . x > 0 ],   w_j ~ N(0, I),   so that   P(bit_j(x) != bit_j(y)) = angle(x, y) / pi

x: unit row of a document. w_j: normal of the hyperplane of bit j.

The fraction of differing bits estimates the angle between two documents, more precisely with more bits. Most
texts are nearly orthogonal, which is why learnt codes need far fewer bits.

No departures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from snuh.encoder import Encoder, Layer
from snuh.progress import OnProgress
from snuh.training.estimator import HashingEstimator, TrainingData, TrainingResult


@dataclass(kw_only=True, eq=False, repr=False)
class LSH(HashingEstimator):
    """Locality-sensitive hashing by random hyperplanes, the baseline without learning.

    Example: `LSH(n_bits=64).fit(X).transform(X)` gives packed codes (docs, 8).
    """

    reads_vectors: ClassVar[bool] = True

    def train(self, data: TrainingData, on_progress: OnProgress | None) -> TrainingResult:
        """Learn an encoder from unit rows."""
        rng = np.random.default_rng([int(self.seed), 1])  # the held-out part is drawn from seed alone
        normals = rng.standard_normal((data.X.shape[1], self.n_bits), dtype=np.float32)
        zeros = np.zeros(self.n_bits, dtype=np.float32)
        encoder = Encoder((Layer(normals, zeros),), zeros)
        return TrainingResult(encoder, data.score(encoder), "solved")
