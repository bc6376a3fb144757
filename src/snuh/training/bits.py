"""Bits that can be trained: drawn at random going forward, seen as their probabilities going back."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse
from torch import Tensor

from snuh.graph import find_unique_rows


def draw_bits(probability: Tensor, generator: torch.Generator) -> Tensor:
    """Draw s ~ Bernoulli(q) as 0.0 and 1.0; the gradient by s is passed on to q (straight-through)."""
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


# Weights that change while training goes on; `epoch` counts from 0 and has a fraction.


def rise(epoch: float, over: float) -> float:
    """From 0 to 1 over these many epochs, then 1."""
    return min(1.0, epoch / over) if over else 1.0


def fall(epoch: float, over: float, *, start: float, end: float) -> float:
    """From `start` to `end` over these many epochs, then `end`."""
    return start + (end - start) * rise(epoch, over)


# Where a real value becomes a bit: between the two halves of the training documents.

Floats = npt.NDArray[np.float32]


def distinct_rows(X: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return each row once: many copies of one document are not the middle of a corpus."""
    first = find_unique_rows(X).first
    return X if len(first) == X.shape[0] else X[first]


def medians(values: Floats) -> Floats:
    """Return for each bit of values (rows, bits) one with half of the rows above, and if possible none at it.

    A row at the threshold itself would have its bit by the rounding of its sums.
    """
    ordered = np.sort(values, axis=0)
    below = (len(ordered) - 1) // 2
    above = min(below + 1, len(ordered) - 1)
    middle: Floats = (ordered[below] + ordered[above]) / 2
    return middle
