"""Divergences and entropies against their definitions, samples and the enumeration of all codes."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from torch import Tensor

from snuh.training.kl import (
    bit_divergence,
    bit_entropy,
    fair_bit_divergence,
    gaussian_divergence,
    mixture_divergence,
)

SAMPLES = 400_000
STANDARD_ERRORS = 5.0  # probability of a false alarm below one in a million per comparison

LOGITS = torch.tensor([-9.0, -2.0, -0.3, 0.0, 0.7, 3.0, 12.0], dtype=torch.float64)
EXTREME = torch.tensor([-1e4, -200.0, 200.0, 1e4])  # sigmoid is 0 or 1 in single precision


def direct_divergence(q: Tensor, p: Tensor) -> Tensor:
    return q * torch.log(q / p) + (1 - q) * torch.log((1 - q) / (1 - p))


def code_probabilities(q: Tensor) -> Tensor:
    """The probability of each code (..., 2**bits) under independent bits with probabilities q (..., bits)."""
    codes = torch.tensor(list(itertools.product([0.0, 1.0], repeat=q.shape[-1])), dtype=q.dtype)
    return torch.where(codes == 1, q[..., None, :], 1 - q[..., None, :]).prod(dim=-1)


def test_the_entropy_of_a_bit_is_its_definition() -> None:
    q = torch.sigmoid(LOGITS)
    torch.testing.assert_close(bit_entropy(LOGITS), -q * torch.log(q) - (1 - q) * torch.log(1 - q))


def test_the_divergence_of_a_bit_from_a_fair_one_is_its_definition() -> None:
    q = torch.sigmoid(LOGITS)
    torch.testing.assert_close(
        fair_bit_divergence(LOGITS), direct_divergence(q, torch.full_like(q, 0.5)), rtol=1e-6, atol=1e-12
    )


def test_the_divergence_of_two_bits_is_its_definition() -> None:
    logit, prior = LOGITS[:, None], LOGITS[None, :]
    torch.testing.assert_close(
        bit_divergence(logit, prior),
        direct_divergence(torch.sigmoid(logit), torch.sigmoid(prior)),
        rtol=1e-6,
        atol=1e-10,
    )


def test_certain_bits_have_no_entropy_and_finite_divergences() -> None:
    nothing = torch.zeros(4)
    torch.testing.assert_close(bit_entropy(EXTREME), nothing)
    torch.testing.assert_close(fair_bit_divergence(EXTREME), nothing + math.log(2.0))
    # A certain bit costs -log p: nothing where the prior agrees, its logit where it does not.
    torch.testing.assert_close(bit_divergence(EXTREME, EXTREME.sign() * 50), nothing)
    torch.testing.assert_close(bit_divergence(EXTREME, -EXTREME.sign() * 50), nothing + 50.0)
    torch.testing.assert_close(bit_divergence(torch.zeros(4), EXTREME), EXTREME.abs() / 2 - math.log(2.0))


def test_gradients_at_certain_bits_are_finite() -> None:
    logit = EXTREME.clone().requires_grad_()
    prior = EXTREME.flip(0).clone().requires_grad_()
    (bit_entropy(logit) + fair_bit_divergence(logit) + bit_divergence(logit, prior)).sum().backward()
    assert torch.isfinite(logit.grad).all()
    assert torch.isfinite(prior.grad).all()


@pytest.mark.parametrize(
    ("mu", "sigma", "mean", "deviation"),
    [(0.0, 1.0, 0.0, 1.0), (0.7, 0.3, -0.5, 1.4), (-1.5, 2.0, 1.0, 0.8), (0.5, 0.01, 0.4, 0.5)],
)
def test_the_divergence_of_gaussians_agrees_with_samples(
    mu: float, sigma: float, mean: float, deviation: float
) -> None:
    z = mu + sigma * np.random.default_rng(0).standard_normal(SAMPLES)
    log_ratio = (
        -0.5 * ((z - mu) / sigma) ** 2
        - math.log(sigma)
        + 0.5 * ((z - mean) / deviation) ** 2
        + math.log(deviation)
    )
    value = gaussian_divergence(*(torch.tensor(v, dtype=torch.float64) for v in (mu, sigma, mean, deviation)))
    error = log_ratio.std(ddof=1) / math.sqrt(SAMPLES)
    assert abs(log_ratio.mean() - float(value)) < STANDARD_ERRORS * error + 1e-12


def random_mixture(docs: int = 5, components: int = 3, bits: int = 4) -> tuple[Tensor, ...]:
    """log q(c|x), log pi, logits of q(s|x) and of p(s|c)."""
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> Tensor:
        return 1.5 * torch.randn(shape, dtype=torch.float64, generator=generator)

    component, shares = draw(docs, components).log_softmax(dim=1), draw(components).log_softmax(dim=0)
    return component, shares, draw(docs, bits), draw(components, bits)


def test_the_divergence_from_a_mixture_is_that_of_code_and_component_together() -> None:
    component, shares, logit, centers = random_mixture()
    within = bit_divergence(logit[:, None], centers).sum(dim=2)
    q = component.exp()[:, :, None] * code_probabilities(torch.sigmoid(logit))[:, None]
    p = shares.exp()[:, None] * code_probabilities(torch.sigmoid(centers))
    exact = (q * torch.log(q / p)).sum(dim=(1, 2))
    torch.testing.assert_close(mixture_divergence(component, shares, within), exact)


def test_the_divergence_from_a_mixture_bounds_that_of_the_code_alone() -> None:
    component, shares, logit, centers = random_mixture()
    within = bit_divergence(logit[:, None], centers).sum(dim=2)
    q = code_probabilities(torch.sigmoid(logit))
    p = (shares.exp()[:, None] * code_probabilities(torch.sigmoid(centers))).sum(dim=0)
    exact = (q * torch.log(q / p)).sum(dim=1)
    bound = mixture_divergence(component, shares, within)
    assert (bound > exact).all()
    # With the best q(c|x), proportional to pi_c exp(-KL_c), it is nearer, and still a bound.
    best = (shares - within).log_softmax(dim=1)
    nearest = mixture_divergence(best, shares, within)
    assert ((nearest > exact) & (nearest < bound)).all()


def test_gradients_agree_with_finite_differences() -> None:
    component, shares, logit, centers = random_mixture(docs=2, components=2, bits=3)
    sigma, deviation = logit.exp(), centers[0].exp()
    inputs = [value.clone().requires_grad_() for value in (component, shares, logit, centers)]

    def bits_from_mixture(c: Tensor, pi: Tensor, left: Tensor, k: Tensor) -> Tensor:
        return mixture_divergence(c, pi, bit_divergence(left[:, None], k).sum(dim=2))

    assert torch.autograd.gradcheck(bits_from_mixture, inputs)
    assert torch.autograd.gradcheck(bit_entropy, inputs[2:3])
    assert torch.autograd.gradcheck(fair_bit_divergence, inputs[2:3])
    gaussian = [value.clone().requires_grad_() for value in (logit, sigma, centers[1], deviation)]
    assert torch.autograd.gradcheck(gaussian_divergence, gaussian)
