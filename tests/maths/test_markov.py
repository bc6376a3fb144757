"""The entropy of codes under a Markov model against the enumeration of all codes."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from snuh.training.kl import best_prior, cross_entropy, window_probabilities

DOCS = 7


def bit_probabilities(bits: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.sigmoid(2.0 * torch.randn((DOCS, bits), dtype=torch.float64, generator=generator))


def mixture_of_products(q: Tensor) -> tuple[list[tuple[int, ...]], Tensor]:
    """All codes, and the probability of each for a random document."""
    codes = list(itertools.product([0, 1], repeat=q.shape[1]))
    table = torch.tensor(codes)
    return codes, torch.where(table == 1, q[:, None], 1 - q[:, None]).prod(dim=2).mean(dim=0)


def exact_entropy(q: Tensor) -> float:
    _, probability = mixture_of_products(q)
    return -float((probability * torch.log(probability)).sum())


def bound(q: Tensor, order: int) -> float:
    windows = window_probabilities(q, order)
    return float(cross_entropy(windows, best_prior(windows)))


@pytest.mark.parametrize("order", [0, 1, 3])
def test_windows_have_the_probabilities_of_all_codes_that_show_them(order: int) -> None:
    q = bit_probabilities(bits=5)
    expected = torch.zeros((5, 2**order, 2), dtype=torch.float64)
    for code, probability in zip(*mixture_of_products(q), strict=True):
        padded = (0,) * order + code
        for bit in range(5):
            before = "".join(map(str, padded[bit : bit + order]))
            expected[bit, int(before or "0", 2), code[bit]] += probability
    torch.testing.assert_close(window_probabilities(q, order), expected)


@pytest.mark.parametrize(("bits", "order"), [(1, 0), (2, 1), (4, 3), (3, 3)])
def test_the_bound_is_the_entropy_where_a_window_holds_the_code(bits: int, order: int) -> None:
    q = bit_probabilities(bits)
    assert bound(q, order) == pytest.approx(exact_entropy(q), abs=1e-6)


def test_the_bound_is_above_the_entropy_of_longer_codes_and_falls_with_the_order() -> None:
    q = bit_probabilities(bits=6)
    bounds = [bound(q, order) for order in range(6)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] > bounds[3] > exact_entropy(q) + 1e-4
    assert bounds[5] == pytest.approx(exact_entropy(q), abs=1e-6)


def test_no_other_prior_makes_the_bound_less() -> None:
    windows = window_probabilities(bit_probabilities(bits=6), order=2)
    best = best_prior(windows)
    torch.testing.assert_close(best.exp().sum(dim=2), torch.ones((6, 4), dtype=torch.float64))
    least = float(cross_entropy(windows, best))
    generator = torch.Generator().manual_seed(1)
    for size in (0.01, 0.1, 1.0):
        moves = size * torch.randn((20, *best.shape), dtype=torch.float64, generator=generator)
        others = (best + moves).log_softmax(dim=3)
        assert min(float(cross_entropy(windows, other)) for other in others) > least


def test_windows_that_never_occur_leave_everything_finite() -> None:
    q = torch.tensor([[0.0, 1.0, 0.0], [0.0, 1.0, 1.0]], dtype=torch.float64).requires_grad_()
    windows = window_probabilities(q, order=2)
    value = cross_entropy(windows, best_prior(windows.detach()))
    value.backward()
    assert value.item() == pytest.approx(torch.log(torch.tensor(2.0)).item(), abs=1e-4)  # one fair bit
    assert torch.isfinite(q.grad).all()


def test_the_gradient_with_the_prior_held_is_that_of_the_bound_itself() -> None:
    """The prior is at its best, so its own change does not count (up to what keeps logarithms finite)."""
    q = bit_probabilities(bits=5).requires_grad_()
    windows = window_probabilities(q, order=2)
    cross_entropy(windows, best_prior(windows.detach())).backward()
    step = 1e-5
    for index in itertools.product(range(DOCS), range(5)):
        up, down = q.detach().clone(), q.detach().clone()
        up[index] += step
        down[index] -= step
        numerical = (bound(up, 2) - bound(down, 2)) / (2 * step)
        assert q.grad[index].item() == pytest.approx(numerical, rel=1e-4, abs=1e-5)
