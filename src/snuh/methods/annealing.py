"""Weights that change while training goes on; `epoch` counts from 0 and has a fraction."""

from __future__ import annotations


def rise(epoch: float, over: float) -> float:
    """From 0 to 1 over these many epochs, then 1."""
    return min(1.0, epoch / over) if over else 1.0


def fall(epoch: float, over: float, *, start: float, end: float) -> float:
    """From `start` to `end` over these many epochs, then `end`."""
    return start + (end - start) * rise(epoch, over)
