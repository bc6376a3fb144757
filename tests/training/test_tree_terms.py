"""The kernel of samples and divergences equals the closed forms, in values and gradients."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.functional import softplus

from snuh.training.kl import best_correlation, edge_divergence, node_divergence
from snuh.training.tree_terms import CLOSE_TO_ONE, CORRELATIONS, TermsOf, tree_terms

DOCS, BITS, TAU = 7, 5, 0.3


def draw(correlation: str, *, own: int = DOCS, neighbors: bool = True) -> tuple[Tensor, Tensor, TermsOf]:
    generator = torch.Generator().manual_seed(0)
    width = BITS * (3 if correlation == "encoder" else 2)
    kind = {"dtype": torch.float64, "generator": generator}
    outputs = torch.randn((DOCS * (2 if neighbors else 1), width), **kind)
    edges = DOCS if neighbors else 0
    given = TermsOf(
        weight=torch.rand(edges, **kind),
        prior=0.1 + 0.8 * torch.rand(edges, **kind),
        noise=torch.randn((DOCS, BITS), **kind),
        own=own,
        tau=TAU,
        correlation=CORRELATIONS[correlation],
    )
    return outputs, torch.randn(width, **kind), given


def by_closed_forms(outputs: Tensor, bias: Tensor, given: TermsOf, correlation: str) -> list[Tensor]:
    mean, deviation, *gamma_part = torch.split(outputs + bias, BITS, dim=1)
    mu, sigma = torch.sigmoid(mean / TAU), softplus(deviation)
    edges = torch.zeros((), dtype=outputs.dtype)
    z = mu[:DOCS] + sigma[:DOCS] * given.noise
    if len(outputs) > DOCS:
        (mu_i, mu_j), (sigma_i, sigma_j) = (values.split(DOCS) for values in (mu, sigma))
        of_neighbor = mu_j + sigma_j * given.noise
        z = torch.cat([z[: given.own], of_neighbor[given.own :]])
    if correlation != "none" and len(outputs) > DOCS:
        prior = given.prior[:, None]
        gamma = torch.zeros_like(mu_i)
        if correlation == "encoder":
            gamma = CLOSE_TO_ONE * torch.tanh((gamma_part[0][:DOCS] + gamma_part[0][DOCS:]) / 2)
        elif correlation == "optimum":
            gamma = best_correlation(sigma_i, sigma_j, prior=prior)
        terms = edge_divergence(mu_i, sigma_i, mu_j, sigma_j, prior=prior, posterior=gamma)
        edges = torch.dot(given.weight, terms.sum(dim=1))
    return [z, node_divergence(mu[:DOCS], sigma[:DOCS]).sum(), edges]


@pytest.mark.parametrize("correlation", list(CORRELATIONS))
@pytest.mark.parametrize("own", [DOCS, 4], ids=["own words", "neighbour words"])
def test_values_and_gradients_equal_those_of_the_closed_forms(correlation: str, own: int) -> None:
    outputs, bias, given = draw(correlation, own=own)
    gradients = []
    values = []
    weigh = torch.randn((DOCS, BITS), dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    for terms in (
        lambda o, b: tree_terms(o, b, given),
        lambda o, b: by_closed_forms(o, b, given, correlation),
    ):
        leaves = [outputs.clone().requires_grad_(), bias.clone().requires_grad_()]
        z, nodes, edges = terms(*leaves)
        values.append([z.detach(), nodes.detach(), edges.detach()])
        ((weigh * z).sum() + 0.7 * nodes - 1.3 * edges).backward()
        gradients.append([leaf.grad for leaf in leaves])
    torch.testing.assert_close(values[0], values[1], rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-8, atol=1e-9)


def test_documents_without_neighbours_have_samples_and_divergences_of_their_own() -> None:
    outputs, bias, given = draw("none", neighbors=False)
    found = tree_terms(outputs, bias, given)
    torch.testing.assert_close(list(found), by_closed_forms(outputs, bias, given, "none"))


def test_extreme_outputs_stay_finite() -> None:
    outputs, bias, given = draw("encoder")
    wide = (outputs * 300).float().requires_grad_()
    floats = TermsOf(
        given.weight.float(), given.prior.float(), given.noise.float(), DOCS, TAU, given.correlation
    )
    with torch.no_grad():
        wide[:, BITS : 2 * BITS] = wide[:, BITS : 2 * BITS].abs()
    z, nodes, edges = tree_terms(wide, bias.float(), floats)
    (z.sum() + nodes + edges).backward()
    assert all(torch.isfinite(values).all() for values in (z, nodes, edges, wide.grad))
