"""What the tree objective makes of the encoder's outputs in one pass: samples, divergences, gradients.

These are some twenty small operations on arrays of a batch. Through autograd each costs more to call than to
compute, in all a seventh of a step (python -m benchmarks.epoch). Here one kernel computes, for every document
and bit, the values of the closed forms in `gaussians` and their derivatives by the outputs; the backward pass
only weighs them. Tests hold it to the closed forms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numba import prange
from torch import Tensor

from snuh._numba import njit

# From where gamma comes, see `tree_objective.Correlation`.
NO_EDGES, FROM_ENCODER, OPTIMUM, ZERO = range(4)
CORRELATIONS = {"none": NO_EDGES, "encoder": FROM_ENCODER, "optimum": OPTIMUM, "prior": ZERO}

CLOSE_TO_ONE = 1.0 - 1e-6
TOGETHER = 4  # factors, none below 1e-70, whose product still has a logarithm


@dataclass(frozen=True)
class TermsOf:
    """What the terms are made from, beside the outputs.

    The first b rows of the outputs are documents, those after them their neighbours, where there are any; the
    columns are what mean, deviation and, for FROM_ENCODER, gamma are made from.
    """

    weight: Tensor  # (b,) of each edge
    prior: Tensor  # (b,) correlation t of each edge
    noise: Tensor  # (b, bits)
    own: int  # so many samples are of documents, the rest of their neighbours
    tau: float
    correlation: int  # one of the numbers above


def tree_terms(outputs: Tensor, bias: Tensor, given: TermsOf) -> tuple[Tensor, Tensor, Tensor]:
    """Return samples z (b, bits), the sum of KL_i, and the sum over edges of w_ij (KL_ij - KL_i - KL_j).

    Args:
        outputs: (rows, 2 or 3 times bits), without the bias.
        bias: (2 or 3 times bits,).
        given: the edges and the noise.
    """
    result: tuple[Tensor, Tensor, Tensor] = _TreeTerms.apply(outputs, bias, given)  # type: ignore[no-untyped-call]
    return result


class _TreeTerms(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, outputs: Tensor, bias: Tensor, given: TermsOf) -> tuple[Tensor, Tensor, Tensor]:
        docs, bits = given.noise.shape
        values = outputs.detach().numpy()
        z = np.empty((docs, bits), dtype=values.dtype)
        by_z = np.empty((docs, 2 * bits), dtype=values.dtype)  # of z by mean and deviation of its own row
        by_nodes = np.empty((docs, 2 * bits), dtype=values.dtype)
        has_edges = given.correlation != NO_EDGES and len(values) > docs
        by_edges = np.zeros(values.shape if has_edges else (0, 0), dtype=values.dtype)
        sums = np.zeros((docs, 2))
        _terms(
            values,
            bias.detach().numpy(),
            given.weight.numpy(),
            given.prior.numpy(),
            given.noise.numpy(),
            given.own,
            given.tau,
            given.correlation if has_edges else NO_EDGES,
            z,
            by_z,
            by_nodes,
            by_edges,
            sums,
        )
        ctx.own, ctx.shape = given.own, values.shape
        ctx.by_z, ctx.by_nodes, ctx.by_edges = by_z, by_nodes, by_edges
        nodes, edges = sums.sum(axis=0)
        return (
            torch.from_numpy(z),
            torch.tensor(nodes, dtype=bias.dtype),
            torch.tensor(edges, dtype=bias.dtype),
        )

    @staticmethod
    def backward(ctx: Any, z: Tensor, nodes: Tensor, edges: Tensor) -> tuple[Tensor | None, ...]:
        by_outputs = np.empty(ctx.shape, dtype=ctx.by_z.dtype)
        by_samples = z.contiguous().numpy()
        _weigh(
            by_samples, nodes.item(), edges.item(), ctx.own, ctx.by_z, ctx.by_nodes, ctx.by_edges, by_outputs
        )
        return torch.from_numpy(by_outputs), torch.from_numpy(by_outputs.sum(axis=0)), None


@njit()
def _deviation(x):  # type: ignore[no-untyped-def]
    """Softplus and its derivative."""
    if x > 20.0:
        return x, 1.0
    e = math.exp(x)
    return math.log1p(e), e / (1.0 + e)


@njit(parallel=True)
def _terms(  # type: ignore[no-untyped-def]
    outputs, bias, weight, prior, noise, own, tau, correlation, z, by_z, by_nodes, by_edges, sums
):
    docs, bits = noise.shape
    for i in prange(docs):
        j = docs + i
        has_edge = correlation != NO_EDGES
        t, w, of_squares, of_products, log_left = 0.0, 0.0, 0.0, 0.0, 0.0
        if has_edge:
            t, w = float(prior[i]), float(weight[i])
            left = 1.0 - t * t
            of_squares, of_products, log_left = 0.5 * t * t / left, t / left, math.log(left)
        nodes, edges = 0.0, 0.0
        # Factors are multiplied, and their logarithm is taken now and then: one is worth many products.
        deviations, rests = 1.0, 1.0
        for c in range(bits):
            mu = 1.0 / (1.0 + math.exp(-(outputs[i, c] + bias[c]) / tau))
            slope = mu * (1.0 - mu) / tau
            sigma, rise = _deviation(outputs[i, bits + c] + bias[bits + c])
            nodes += 0.5 * (mu * mu + sigma * sigma - 1.0)
            deviations *= sigma
            if c % TOGETHER == 0:
                nodes -= math.log(deviations)
                edges -= 0.5 * math.log(rests)
                deviations, rests = 1.0, 1.0
            by_nodes[i, c] = mu * slope
            by_nodes[i, bits + c] = (sigma - 1.0 / sigma) * rise
            if i < own:
                z[i, c] = mu + sigma * noise[i, c]
                by_z[i, c], by_z[i, bits + c] = slope, noise[i, c] * rise
            if not has_edge and i < own:
                continue
            mu_j = 1.0 / (1.0 + math.exp(-(outputs[j, c] + bias[c]) / tau))
            slope_j = mu_j * (1.0 - mu_j) / tau
            sigma_j, rise_j = _deviation(outputs[j, bits + c] + bias[bits + c])
            if i >= own:
                z[i, c] = mu_j + sigma_j * noise[i, c]
                by_z[i, c], by_z[i, bits + c] = slope_j, noise[i, c] * rise_j
            if not has_edge:
                continue
            g = 0.0
            if correlation == FROM_ENCODER:
                both = outputs[i, 2 * bits + c] + outputs[j, 2 * bits + c] + 2.0 * bias[2 * bits + c]
                bend = 2.0 / (1.0 + math.exp(-both)) - 1.0  # tanh(both / 2), in less than half the time
                g = CLOSE_TO_ONE * bend
                by_g = -of_products * sigma * sigma_j + g / (1.0 - g * g)
                by_part = w * by_g * CLOSE_TO_ONE * (1.0 - bend * bend) * 0.5
                by_edges[i, 2 * bits + c] = by_part
                by_edges[j, 2 * bits + c] = by_part
            elif correlation == OPTIMUM:
                # The derivative by gamma is zero there.
                a = of_products * sigma * sigma_j
                g = 2.0 * a / (1.0 + math.sqrt(1.0 + 4.0 * a * a))
            squares = mu * mu + mu_j * mu_j + sigma * sigma + sigma_j * sigma_j
            products = mu * mu_j + g * sigma * sigma_j
            edges += of_squares * squares - of_products * products + 0.5 * log_left
            rests *= 1.0 - g * g
            by_edges[i, c] = w * (2.0 * of_squares * mu - of_products * mu_j) * slope
            by_edges[j, c] = w * (2.0 * of_squares * mu_j - of_products * mu) * slope_j
            by_edges[i, bits + c] = w * (2.0 * of_squares * sigma - of_products * g * sigma_j) * rise
            by_edges[j, bits + c] = w * (2.0 * of_squares * sigma_j - of_products * g * sigma) * rise_j
        sums[i, 0] = nodes - math.log(deviations)
        sums[i, 1] = w * (edges - 0.5 * math.log(rests))


@njit()
def _weigh(z, nodes, edges, own, by_z, by_nodes, by_edges, by_outputs):  # type: ignore[no-untyped-def]
    """Add up the derivatives by the outputs, each times the gradient of its term."""
    docs, width = by_nodes.shape
    bits = width // 2
    for r in range(by_outputs.shape[0]):
        for c in range(by_outputs.shape[1]):
            by_outputs[r, c] = edges * by_edges[r, c] if len(by_edges) else 0.0
    for i in range(docs):
        for c in range(width):
            by_outputs[i, c] += nodes * by_nodes[i, c]
        sampled = i if i < own else docs + i
        for c in range(bits):
            by_outputs[sampled, c] += z[i, c] * by_z[i, c]
            by_outputs[sampled, bits + c] += z[i, c] * by_z[i, bits + c]
