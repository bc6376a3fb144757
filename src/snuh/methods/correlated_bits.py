"""Correlated bits as a mixture over random logits, for CorrSH.

    r = mu + deviation * e1 + U e2,    s_b ~ Bernoulli(sigmoid(r_b)),    e1, e2 standard normal

Given r the bits are independent; marginally they are correlated by the low-rank U (bits, rank).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import softplus


def draw_logits(
    mu: Tensor, deviation: Tensor, factors: Tensor, *, samples: int, generator: torch.Generator
) -> Tensor:
    """Draw samples of r, (samples, documents, bits).

    Args:
        mu: (documents, bits).
        deviation: (documents, bits).
        factors: U, (documents, bits, rank).
        samples: number of samples per document.
        generator: of the samples.
    """
    docs, bits, rank = factors.shape
    own = torch.randn((samples, docs, bits), generator=generator, dtype=mu.dtype)
    shared = torch.randn((samples, docs, rank), generator=generator, dtype=mu.dtype)
    return mu + deviation * own + torch.einsum("dbr,sdr->sdb", factors, shared)


def log_probability(bits: Tensor, logits: Tensor) -> Tensor:
    """Return log of the mean over samples of p(s|r), (documents,).

    If s was drawn given one of these samples, its expectation is at least E log q(s), and tends to it with
    more samples: a divergence computed from it is never underestimated in expectation.
    """
    by_sample = (logits * bits - softplus(logits)).sum(dim=2)
    return torch.logsumexp(by_sample, dim=0) - math.log(len(logits))
