"""Weights that change during training; `epoch` counts from 0 and is fractional within an epoch."""

from __future__ import annotations


def linear_warmup(epoch: float, epochs: float) -> float:
    """Rise linearly from 0 to 1 over the first `epochs`, then stay at 1."""
    return min(1.0, epoch / epochs) if epochs else 1.0


def linear_schedule(epoch: float, epochs: float, *, start: float, end: float) -> float:
    """Move linearly from `start` to `end` over the first `epochs`, then stay at `end`."""
    return start + (end - start) * linear_warmup(epoch, epochs)
