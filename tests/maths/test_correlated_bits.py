"""Correlated bits: how the logits spread, and how well a few of them estimate the probability of a code."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor

from snuh.training.kl import draw_logits, log_probability

STANDARD_ERRORS = 5.0  # probability of a false alarm below one in a million per comparison
DOCS, BITS, RANK = 2, 3, 2


def parameters() -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    mu = torch.randn((DOCS, BITS), dtype=torch.float64, generator=generator)
    deviation = torch.rand((DOCS, BITS), dtype=torch.float64, generator=generator) + 0.5
    return mu, deviation, 2.0 * torch.randn((DOCS, BITS, RANK), dtype=torch.float64, generator=generator)


def draw(samples: int, seed: int) -> Tensor:
    return draw_logits(*parameters(), samples=samples, generator=torch.Generator().manual_seed(seed))


def standard_error(samples: Tensor) -> Tensor:
    return samples.std(dim=0) / len(samples) ** 0.5


def test_drawn_logits_have_the_mean_and_the_covariance_they_should() -> None:
    mu, deviation, factors = parameters()
    logits = draw(200_000, seed=1)
    assert ((logits.mean(dim=0) - mu).abs() < STANDARD_ERRORS * standard_error(logits)).all()
    centred = logits - mu
    products = centred[..., :, None] * centred[..., None, :]
    expected = torch.diag_embed(deviation.square()) + factors @ factors.transpose(1, 2)
    assert ((products.mean(dim=0) - expected).abs() < STANDARD_ERRORS * standard_error(products)).all()


def test_documents_and_draws_do_not_depend_on_each_other() -> None:
    mu, _, _ = parameters()
    centred = draw(200_000, seed=2) - mu
    others = torch.stack([centred[:, 0] * centred[:, 1], centred[:, 0] * centred.roll(1, dims=0)[:, 0]])
    for products in others:
        assert (products.mean(dim=0).abs() < STANDARD_ERRORS * standard_error(products)).all()


def test_the_log_probability_of_given_logits_is_the_log_of_their_mean() -> None:
    logits = draw(6, seed=3)
    bits = torch.tensor([[1.0, 0.0, 1.0], [0.0, 0.0, 1.0]], dtype=torch.float64)
    p = torch.sigmoid(logits)
    expected = torch.where(bits == 1, p, 1 - p).prod(dim=2).mean(dim=0).log()
    torch.testing.assert_close(log_probability(bits, logits), expected)


def test_the_log_probability_stays_finite_for_extreme_logits() -> None:
    logits = torch.tensor([[[300.0, -300.0]], [[200.0, -200.0]]])
    assert log_probability(torch.tensor([[0.0, 1.0]]), logits).item() < -300
    assert log_probability(torch.tensor([[1.0, 0.0]]), logits).item() == 0.0


def test_the_estimate_is_never_too_small_in_the_mean_and_nears_the_truth() -> None:
    """E log q(s) needs q(s) of every code: the mean over very many logits, the same for all comparisons."""
    trials = 20_000
    codes = torch.tensor(list(itertools.product([0.0, 1.0], repeat=BITS)), dtype=torch.float64)
    p = torch.sigmoid(draw(200_000, seed=4))
    q = torch.stack([torch.where(code == 1, p, 1 - p).prod(dim=2).mean(dim=0) for code in codes], dim=1)
    truth = (q * torch.log(q)).sum(dim=1)  # (documents,)

    generator = torch.Generator().manual_seed(6)
    gaps = []
    for samples in (1, 4, 32):
        logits = draw(samples * trials, seed=5).reshape(samples, trials, DOCS, BITS)
        own = torch.sigmoid(logits[0])
        bits = (torch.rand(own.shape, dtype=torch.float64, generator=generator) < own).double()
        estimates = log_probability(
            bits.reshape(trials * DOCS, BITS), logits.reshape(samples, trials * DOCS, BITS)
        ).reshape(trials, DOCS)
        gap = estimates.mean(dim=0) - truth
        assert (gap > -STANDARD_ERRORS * standard_error(estimates)).all()
        gaps.append(gap)
    assert (gaps[0] > gaps[1] + 0.05).all()
    assert (gaps[1] > gaps[2] + 0.05).all()
    assert (gaps[2] < 0.1).all()
