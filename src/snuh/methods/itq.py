"""ITQ: principal directions, rotated to be as close to bits as possible.

Gong, Lazebnik: Iterative Quantization: A Procrustean Approach to Learning Binary Codes. CVPR 2011.

    minimise  | B - V R |^2   over   B in {-1, 1}^(docs x bits)   and   R' R = I               Eq. (2)

V: centred projections of the documents on their leading principal directions. R: the rotation. B: the codes.
The optimum of each, given the other, has a closed form: B = sign(V R), and R by orthogonal
Procrustes, R = S T' where S O T' is the SVD of V' B. The error never increases (`principal.rotate_to_bits`).

Departures: the directions are computed by PCA within LSA (`principal`); if there are fewer directions than
bits, columns of zeros are added to V, and the rotation spreads the others over all bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from snuh.encoder import Encoder, Layer
from snuh.progress import OnProgress
from snuh.training.estimator import HashingEstimator, Range, TrainingData, TrainingResult
from snuh.training.spectral import fit_principal, rotate_to_bits


@dataclass(kw_only=True, eq=False, repr=False)
class ITQ(HashingEstimator):
    """Iterative quantisation of LSA.

    Example: `ITQ(n_bits=64).fit(X).transform(X)` gives packed codes (docs, 8).
    """

    iterations: int = 50  # alternating updates of codes and rotation

    reads_vectors: ClassVar[bool] = True
    ranges: ClassVar[Mapping[str, Range]] = {
        **HashingEstimator.ranges,
        "iterations": Range(integer=True),
    }

    def train(self, data: TrainingData, on_progress: OnProgress | None) -> TrainingResult:
        """Learn an encoder from unit rows."""
        rng = np.random.default_rng([int(self.seed), 1])  # the held-out part is drawn from seed alone
        principal = fit_principal(data.X, dims=self.n_bits, seed=int(self.seed))
        rotated = rotate_to_bits(
            principal, data.X, bits=self.n_bits, iterations=int(self.iterations), rng=rng
        )
        layer = Layer(rotated.directions.astype(np.float32), -rotated.mean.astype(np.float32))
        encoder = Encoder((layer,), np.zeros(self.n_bits, dtype=np.float32))
        return TrainingResult(encoder, data.score(encoder), "solved")
