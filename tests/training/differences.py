"""Gradients against finite differences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor


def assert_gradient_is_right(function: Callable[[Tensor], Tensor], start: Tensor) -> None:
    """Compare with central differences of a random projection, one entry at a time."""
    weights = torch.randn(
        function(start).shape, dtype=torch.float64, generator=torch.Generator().manual_seed(9)
    )
    point = start.clone().requires_grad_()
    (function(point) * weights).sum().backward()
    step = 1e-6
    for index in np.ndindex(*start.shape):
        moved = [start.clone(), start.clone()]
        moved[0][index] += step
        moved[1][index] -= step
        up, down = ((function(value) * weights).sum().item() for value in moved)
        assert point.grad[index].item() == pytest.approx((up - down) / (2 * step), rel=1e-5, abs=1e-7)
