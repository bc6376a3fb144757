"""Our Adam takes the same steps as PyTorch's."""

from __future__ import annotations

import math
import os
import subprocess
import sys

import pytest
import torch
from torch import Tensor

from snuh.training.adam import Adam

SHAPES = ((300, 70), (70,), ())


def parameters(dtype: torch.dtype = torch.float32) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator, dtype=dtype).requires_grad_() for shape in SHAPES]


def give_gradients(parameters: list[Tensor], *, step: int, size: float) -> None:
    generator = torch.Generator().manual_seed(step)
    for parameter in parameters:
        parameter.grad = size * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [1e-6, 0.01, 3.0])  # the last is clipped
def test_steps_equal_those_of_pytorch(dtype: torch.dtype, size: float) -> None:
    ours, theirs = parameters(dtype), parameters(dtype)
    adam, reference = Adam(ours, clip=10.0), torch.optim.Adam(theirs)
    for step in range(30):
        rate = 0.01 / (step + 1)
        for each in (ours, theirs):
            give_gradients(each, step=step, size=size)
        assert adam.step(rate)
        torch.nn.utils.clip_grad_norm_(theirs, 10.0)
        reference.param_groups[0]["lr"] = rate
        reference.step()
    for own, expected in zip(ours, theirs, strict=True):
        assert torch.allclose(own, expected, rtol=1e-5, atol=1e-6 if dtype == torch.float32 else 1e-12)


def test_a_parameter_without_gradient_stays_and_its_moments_wait() -> None:
    ours, theirs = parameters(), parameters()
    adam, reference = Adam(ours, clip=1e9), torch.optim.Adam(theirs, lr=0.1)
    for step in range(3):
        for each in (ours, theirs):
            give_gradients(each, step=step, size=1.0)
            if step < 2:
                each[1].grad = None
        adam.step(0.1)
        reference.step()
        assert torch.equal(ours[1], parameters()[1]) == (step < 2)
    for own, expected in zip(ours, theirs, strict=True):
        assert torch.allclose(own, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_no_step_against_what_is_not_finite(bad: float) -> None:
    ours, fresh = parameters(), parameters()
    adam, anew = Adam(ours, clip=10.0), Adam(fresh, clip=10.0)
    give_gradients(ours, step=0, size=1.0)
    assert ours[0].grad is not None
    ours[0].grad[299, 69] = bad
    assert not adam.step(0.1)
    for own, before in zip(ours, fresh, strict=True):
        assert torch.equal(own, before)
    for each in (ours, fresh):
        give_gradients(each, step=1, size=1.0)
    assert adam.step(0.1) and anew.step(0.1)
    for own, expected in zip(ours, fresh, strict=True):  # nothing was remembered
        assert torch.equal(own, expected)


def test_forgetting_is_starting_anew() -> None:
    ours, fresh = parameters(), parameters()
    adam = Adam(ours, clip=10.0)
    give_gradients(ours, step=0, size=1.0)
    adam.step(0.1)
    adam.forget()
    with torch.no_grad():
        for own, start in zip(ours, fresh, strict=True):
            own.copy_(start)
    anew = Adam(fresh, clip=10.0)
    for each in (ours, fresh):
        give_gradients(each, step=1, size=1.0)
    assert adam.step(0.1) and anew.step(0.1)
    for own, expected in zip(ours, fresh, strict=True):
        assert torch.equal(own, expected)


def test_one_number_spread_over_an_array_is_a_gradient() -> None:
    spread = torch.zeros(5, 3, requires_grad=True)
    spread.grad = torch.tensor(1.0).expand(5, 3)
    Adam([spread], clip=100.0).step(0.5)
    assert torch.allclose(spread, torch.tensor(-0.5))


NORMS = """
import numba, numpy as np
from snuh.training.adam import sum_squares
rng = np.random.default_rng(0)
gradients = [rng.normal(size=500_000) for _ in range(10)]
many = [sum_squares(gradient) for gradient in gradients]
assert numba.get_num_threads() == 2
numba.set_num_threads(1)
assert [sum_squares(gradient) for gradient in gradients] == many
assert np.allclose(many, [gradient @ gradient for gradient in gradients])
"""


def test_the_norm_does_not_depend_on_the_threads() -> None:
    two = os.environ | {"NUMBA_NUM_THREADS": "2"}  # the tests themselves run with one
    done = subprocess.run([sys.executable, "-c", NORMS], env=two, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_parameter_that_cannot_be_changed_in_place_is_refused() -> None:
    with pytest.raises(RuntimeError, match="view"):
        Adam([torch.zeros(4, 3).t().requires_grad_()], clip=1.0)
