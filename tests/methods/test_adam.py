"""Our Adam takes the same steps as PyTorch's."""

from __future__ import annotations

import math

import numba
import pytest
import torch
from torch import Tensor

from snuh.methods.adam import Adam

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
    ours = parameters()
    adam = Adam(ours, clip=10.0)
    give_gradients(ours, step=0, size=1.0)
    assert ours[0].grad is not None
    ours[0].grad[299, 69] = bad
    assert not adam.step(0.1)
    for own, before in zip(ours, parameters(), strict=True):
        assert torch.equal(own, before)


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


def test_gradients_without_an_array_of_their_own_are_read() -> None:
    """Autograd gives one number for many, as an array without memory, where it can."""
    spread = torch.zeros(5, 3, requires_grad=True)
    spread.sum().backward()  # type: ignore[no-untyped-call]
    Adam([spread], clip=100.0).step(0.5)
    assert torch.allclose(spread, torch.tensor(-0.5))


def test_the_number_of_threads_changes_nothing() -> None:
    results = []
    for threads in (1, numba.config.NUMBA_NUM_THREADS):
        numba.set_num_threads(threads)
        ours = parameters()
        give_gradients(ours, step=0, size=3.0)  # clipped, so that the norm tells
        Adam(ours, clip=1.0).step(0.1)
        results.append(ours)
    for one, many in zip(*results, strict=True):
        assert torch.equal(one, many)


def test_a_parameter_that_cannot_be_changed_in_place_is_refused() -> None:
    with pytest.raises(RuntimeError):
        Adam([torch.zeros(4, 3).t()], clip=1.0)
