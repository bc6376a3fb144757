"""Adam with clipping, in two passes over the gradients: one for their norm, one for the step.

With torch's dot products and fused Adam an epoch takes 3 to 13 % longer (python -m benchmarks.epoch). The
result is the same on any number of threads, so that workers which share their gradients stay equal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from numba import prange
from torch import Tensor

from snuh._numba import njit

FADE_MEAN, FADE_SQUARE, TINY = 0.9, 0.999, 1e-8
PART = 8192  # values that one thread works on at a time

Flat = npt.NDArray[np.floating[Any]]


@dataclass
class _Moments:
    """Of one parameter: the faded means of its gradient and of its square, and the steps they have seen."""

    mean: Flat
    square: Flat
    steps: int = 0


class Adam:
    """Takes the steps of Adam (Kingma and Ba, 2015) for parameters that keep their arrays.

    Args:
        parameters: contiguous leaves, changed in place.
        clip: largest norm of all gradients together; larger ones are scaled down to it.
    """

    def __init__(self, parameters: list[Tensor], *, clip: float) -> None:
        self._parameters, self._clip = parameters, clip
        self._values = [parameter.detach().view(-1).numpy() for parameter in parameters]
        self.forget()

    def forget(self) -> None:
        """Start anew, as if no step had been taken."""
        self._moments = [_Moments(np.zeros_like(value), np.zeros_like(value)) for value in self._values]

    def drop_gradients(self) -> None:
        """Let go of the last step's gradients."""
        for parameter in self._parameters:
            parameter.grad = None

    def step(self, rate: float) -> bool:
        """Take a step against the gradients; False, and no step, where their squares are not finite."""
        gradients = [_flat(parameter.grad) for parameter in self._parameters]
        norm = math.sqrt(sum(sum_squares(flat) for flat in gradients if flat is not None))
        if not math.isfinite(norm):
            return False
        scale = min(1.0, self._clip / norm) if norm > 0 else 1.0
        for value, flat, moments in zip(self._values, gradients, self._moments, strict=True):
            if flat is not None:
                _step(value, flat, moments, rate, scale)
        return True


def _flat(gradient: Tensor | None) -> Flat | None:
    return None if gradient is None else torch.ravel(gradient).numpy()


def sum_squares(gradient: Flat) -> float:
    """Return the sum of squares, added up in an order that does not depend on the threads."""
    return float(_squares_by_part(gradient).sum())


def _step(value: Flat, gradient: Flat, moments: _Moments, rate: float, scale: float) -> None:
    moments.steps += 1
    numbers = (
        scale,
        FADE_MEAN,
        1.0 - FADE_MEAN,
        FADE_SQUARE,
        1.0 - FADE_SQUARE,
        rate / (1.0 - FADE_MEAN**moments.steps),
        1.0 / math.sqrt(1.0 - FADE_SQUARE**moments.steps),
        TINY,
    )
    # In the parameter's own precision: one double among them would make doubles of all.
    _update(value, gradient, moments.mean, moments.square, *map(value.dtype.type, numbers))


@njit(parallel=True, fastmath=True)
def _update(  # type: ignore[no-untyped-def]
    value, gradient, mean, square, scale, fade_mean, of_new, fade_square, of_new_square, rate, root, tiny
):
    for i in prange(len(value)):
        g = gradient[i] * scale
        mean[i] = fade_mean * mean[i] + of_new * g
        square[i] = fade_square * square[i] + of_new_square * g * g
        value[i] -= rate * mean[i] / (np.sqrt(square[i]) * root + tiny)


@njit(parallel=True, fastmath=True)
def _squares_by_part(gradient):  # type: ignore[no-untyped-def]
    # The parts are not added up here: numba would let each thread add its own.
    sums = np.zeros((len(gradient) + PART - 1) // PART)
    for k in prange(len(sums)):
        part = gradient[k * PART : (k + 1) * PART]
        sum_ = part.dtype.type(0)
        for i in range(len(part)):
            sum_ += part[i] * part[i]
        sums[k] = sum_
    return sums
