"""Spectral hashing: waves along principal directions, the slowest first.

Weiss, Torralba, Fergus: Spectral Hashing. NIPS 2008.

    minimise  sum_ij W_ij | y_i - y_j |^2   over balanced, uncorrelated codes y in {-1, 1}^bits

Without the constraint to -1 and 1, and for documents distributed uniformly in a box, the solutions are known:
along a side [a, b] of the box they are

    Phi_k(x) = cos(k pi (x - a) / (b - a)),   with eigenvalue rising in k / (b - a),   k = 1, 2, ...

x: a document's projection on a principal direction. The bits are the eigenfunctions with the smallest
eigenvalues over all directions and k; a bit is 1 if its Phi is above 0. A wide direction thus gets several
bits, each finer than the last.

Departures: the directions are computed by PCA within LSA (`principal`); the box leaves out a few documents at
each end of a side (`tail`), since a single outlier would stretch it. tail = 0 is the paper's box.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from snuh.encoder import Encoder, Layer
from snuh.progress import OnProgress
from snuh.training.estimator import HashingEstimator, Range, TrainingData, TrainingResult
from snuh.training.spectral import Reals, fit_principal

MIN_SIDE = 1e-6  # relative to the widest side; smaller ones are rounding errors


@dataclass(frozen=True)
class Waves:
    """One eigenfunction cos(rate (x - start)) per bit, along a principal direction."""

    direction: npt.NDArray[np.intp]  # (bits,)
    rate: Reals  # (bits,)
    start: Reals  # (bits,)


@dataclass(kw_only=True, eq=False, repr=False)
class SpH(HashingEstimator):
    """Spectral hashing.

    Example: `SpH(n_bits=64).fit(X).transform(X)` gives packed codes (docs, 8).
    """

    tail: float = 0.02  # fraction of the documents outside the box, at each end of a side

    reads_vectors: ClassVar[bool] = True
    ranges: ClassVar[Mapping[str, Range]] = {**HashingEstimator.ranges, "tail": Range(below=0.5)}

    def train(self, data: TrainingData, on_progress: OnProgress | None) -> TrainingResult:
        """Learn an encoder from unit rows."""
        principal = fit_principal(data.X, dims=self.n_bits, seed=int(self.seed))
        waves = slowest_waves(principal.values(data.X), bits=self.n_bits, tail=float(self.tail))
        weight = principal.directions[:, waves.direction] * waves.rate
        bias = -waves.rate * (principal.mean[waves.direction] + waves.start)
        layer = Layer(weight.astype(np.float32), bias.astype(np.float32), "cos")
        encoder = Encoder((layer,), np.zeros(self.n_bits, dtype=np.float32))
        return TrainingResult(encoder, data.score(encoder), "solved")


def slowest_waves(values: Reals, *, bits: int, tail: float) -> Waves:
    """Return the eigenfunctions with the smallest eigenvalues, for projections (docs, directions)."""
    start, end = np.quantile(values, [tail, 1 - tail], axis=0)
    side = end - start
    side = np.maximum(side, MIN_SIDE * (side.max() or 1.0))
    rates = np.pi * np.arange(1, bits + 1)[:, None] / side  # (k, directions)
    slowest = np.argsort(rates, axis=None, kind="stable")[:bits]
    direction = slowest % len(side)
    return Waves(direction, rates.ravel()[slowest], start[direction])
