"""Every closed form against samples, against full small-graph Gaussians, and by finite differences."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from snuh.training.kl import best_correlation, edge_divergence, node_divergence

SAMPLES = 400_000
STANDARD_ERRORS = 5.0  # probability of a false alarm below one in a million per comparison

EDGE_CASES = list(itertools.product([0.0, 0.3, 0.9, 0.99], [-0.8, 0.0, 0.6, 0.97]))


def tensor(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def gaussian_log_density(z: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    difference = z - mean
    solved = np.linalg.solve(covariance, difference.T).T
    return -0.5 * (
        (difference * solved).sum(1) + np.linalg.slogdet(covariance)[1] + len(mean) * np.log(2 * np.pi)
    )


def gaussian_divergence(
    mean_q: np.ndarray, cov_q: np.ndarray, mean_p: np.ndarray, cov_p: np.ndarray
) -> float:
    """KL between full multivariate Gaussians, the textbook formula."""
    inverse = np.linalg.inv(cov_p)
    difference = mean_p - mean_q
    return 0.5 * float(
        np.trace(inverse @ cov_q)
        + difference @ inverse @ difference
        - len(mean_q)
        + np.linalg.slogdet(cov_p)[1]
        - np.linalg.slogdet(cov_q)[1]
    )


def assert_mean_is(samples: np.ndarray, expected: float) -> None:
    error = samples.std(ddof=1) / np.sqrt(len(samples))
    assert abs(samples.mean() - expected) < STANDARD_ERRORS * error + 1e-12


@pytest.mark.parametrize(("mu", "sigma"), [(0.0, 1.0), (0.7, 0.3), (-1.5, 2.0), (0.5, 0.01)])
def test_node_divergence_agrees_with_samples(mu: float, sigma: float) -> None:
    rng = np.random.default_rng(0)
    z = mu + sigma * rng.standard_normal((SAMPLES, 1))
    log_q = gaussian_log_density(z, np.array([mu]), np.array([[sigma**2]]))
    log_p = gaussian_log_density(z, np.zeros(1), np.eye(1))
    assert_mean_is(log_q - log_p, float(node_divergence(tensor(mu), tensor(sigma))))


@pytest.mark.parametrize(("prior", "posterior"), EDGE_CASES)
def test_edge_divergence_agrees_with_samples(prior: float, posterior: float) -> None:
    mu, sigma = np.array([0.8, 0.3]), np.array([0.5, 0.2])
    cov_q = np.outer(sigma, sigma) * np.array([[1, posterior], [posterior, 1]])
    cov_p = np.array([[1, prior], [prior, 1]])
    z = np.random.default_rng(1).multivariate_normal(mu, cov_q, size=SAMPLES)
    singles = sum(
        gaussian_log_density(z[:, [n]], mu[[n]], np.array([[sigma[n] ** 2]]))
        - gaussian_log_density(z[:, [n]], np.zeros(1), np.eye(1))
        for n in (0, 1)
    )
    pair = gaussian_log_density(z, mu, cov_q) - gaussian_log_density(z, np.zeros(2), cov_p)
    expected = edge_divergence(
        tensor(mu[0]),
        tensor(sigma[0]),
        tensor(mu[1]),
        tensor(sigma[1]),
        prior=tensor(prior),
        posterior=tensor(posterior),
    )
    assert_mean_is(pair - singles, float(expected))


def test_edge_divergence_can_be_negative() -> None:
    one = tensor(1.0)
    value = edge_divergence(one, one, one, one, prior=tensor(0.9), posterior=tensor(0.9))
    assert float(value) < 0


@pytest.mark.parametrize("prior", [0.0, 1e-9, 0.3, 0.9, 0.99])
def test_best_correlation_is_the_minimum_over_a_fine_grid(prior: float) -> None:
    sigma_i, sigma_j = tensor(0.7), tensor(0.2)
    grid = torch.linspace(-0.9999, 0.9999, 200_001, dtype=torch.float64)
    values = edge_divergence(tensor(0.4), sigma_i, tensor(0.9), sigma_j, prior=tensor(prior), posterior=grid)
    best = best_correlation(sigma_i, sigma_j, prior=tensor(prior))
    at_best = edge_divergence(tensor(0.4), sigma_i, tensor(0.9), sigma_j, prior=tensor(prior), posterior=best)
    assert float(at_best) <= float(values.min()) + 1e-12
    assert abs(float(best) - float(grid[values.argmin()])) < 2e-5


def test_best_correlation_tends_to_a_where_a_vanishes() -> None:
    a = 1e-6
    best = best_correlation(tensor(a), tensor(1.0), prior=tensor(0.5))
    assert float(best) == pytest.approx(a * 0.5 / 0.75, rel=1e-9)


def test_gradients_agree_with_finite_differences() -> None:
    torch.manual_seed(0)
    mu_i, mu_j = (torch.rand(4, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    sigma_i, sigma_j = ((torch.rand(4, 3, dtype=torch.float64) + 0.1).requires_grad_() for _ in range(2))
    posterior = (torch.rand(4, 3, dtype=torch.float64) * 1.6 - 0.8).requires_grad_()
    prior = torch.tensor([[0.0], [0.4], [0.9], [0.99]], dtype=torch.float64)

    def edge(*inputs: torch.Tensor) -> torch.Tensor:
        a, b, c, d, g = inputs
        return edge_divergence(a, b, c, d, prior=prior, posterior=g)

    def edge_at_best(*inputs: torch.Tensor) -> torch.Tensor:
        a, b, c, d = inputs
        return edge_divergence(a, b, c, d, prior=prior, posterior=best_correlation(b, d, prior=prior))

    assert torch.autograd.gradcheck(node_divergence, (mu_i, sigma_i))
    assert torch.autograd.gradcheck(edge, (mu_i, sigma_i, mu_j, sigma_j, posterior))
    assert torch.autograd.gradcheck(edge_at_best, (mu_i, sigma_i, mu_j, sigma_j))


def test_the_gradient_does_not_change_when_the_best_correlation_is_held_fixed() -> None:
    """The optimum's own derivative is zero (envelope theorem), so training need not differentiate it."""
    torch.manual_seed(1)
    mu_i, mu_j = torch.rand(5, dtype=torch.float64), torch.rand(5, dtype=torch.float64)
    prior = tensor(0.99)
    gradients = []
    for hold in (False, True):
        sigma_i = torch.linspace(0.1, 1, 5, dtype=torch.float64).requires_grad_()
        sigma_j = torch.linspace(0.5, 0.2, 5, dtype=torch.float64).requires_grad_()
        best = best_correlation(sigma_i, sigma_j, prior=prior)
        best = best.detach() if hold else best
        edge_divergence(mu_i, sigma_i, mu_j, sigma_j, prior=prior, posterior=best).sum().backward()
        gradients.append(torch.cat([sigma_i.grad, sigma_j.grad]))
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-9, atol=1e-12)
