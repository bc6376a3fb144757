"""Random bits with the straight-through gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse
from torch import Tensor

from snuh.graph import find_unique_rows


def draw_bits(probability: Tensor, generator: torch.Generator) -> Tensor:
    """Draw s ~ Bernoulli(q) as 0.0 and 1.0; the gradient of s is passed to q (straight-through)."""
    drawn: Tensor = _StraightThrough.apply(probability, generator)  # type: ignore[no-untyped-call]
    return drawn


class _StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, probability: Tensor, generator: torch.Generator) -> Tensor:
        uniform = torch.rand(probability.shape, generator=generator, dtype=probability.dtype)
        return (uniform < probability).to(probability.dtype)

    @staticmethod
    def backward(ctx: Any, by_bits: Tensor) -> tuple[Tensor, None]:
        return by_bits, None


# Weights that change during training; `epoch` counts from 0 and is fractional within an epoch.


def linear_warmup(epoch: float, epochs: float) -> float:
    """Rise linearly from 0 to 1 over the first `epochs`, then stay at 1."""
    return min(1.0, epoch / epochs) if epochs else 1.0


def linear_schedule(epoch: float, epochs: float, *, start: float, end: float) -> float:
    """Move linearly from `start` to `end` over the first `epochs`, then stay at `end`."""
    return start + (end - start) * linear_warmup(epoch, epochs)


# Thresholds that turn real values into bits: the medians of the training documents.

Floats = npt.NDArray[np.float32]


def distinct_rows(X: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return each distinct row once, so that many copies of a document do not shift the medians."""
    first = find_unique_rows(X).first
    return X if len(first) == X.shape[0] else X[first]


def medians(values: Floats) -> Floats:
    """Return the median of each bit of values (rows, bits), between two rows if there is more than one.

    The bit of a row exactly at the threshold would depend on rounding.
    """
    ordered = np.sort(values, axis=0)
    below = (len(ordered) - 1) // 2
    above = min(below + 1, len(ordered) - 1)
    middle: Floats = (ordered[below] + ordered[above]) / 2
    return middle
