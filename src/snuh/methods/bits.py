"""Random bits with the straight-through gradient."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


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
