"""The entropy of codes under a Markov model, which AMMI maximises.

The bits of a document are independent with probabilities q. The code of a random document is a mixture over
documents. A Markov model of that mixture, in which a bit depends on the `order` bits before it, gives an
upper bound on its entropy:

    H(Z) <= - sum_b E log p(z_b | z_(b-order) ... z_(b-1)),    with equality for the best p if Z is Markov

The expectation needs only the probabilities of windows of order + 1 bits: products within a document.
"""

from __future__ import annotations

import torch
from torch import Tensor


def window_probabilities(q: Tensor, order: int) -> Tensor:
    """Return the probability of each value of the window of each bit, averaged over documents.

    Args:
        q: probabilities of a 1, (documents, bits).
        order: number of preceding bits in the window of a bit; zeros precede the first bit.

    Returns:
        (bits, 2**order, 2): indexed by the preceding bits as a binary number, then by the bit itself.
    """
    docs, bits = q.shape
    padded = torch.cat([torch.zeros((docs, order), dtype=q.dtype), q], dim=1)
    joint = torch.ones((docs, bits, 1), dtype=q.dtype)
    for offset in range(order + 1):
        one = padded[:, offset : offset + bits, None]
        joint = torch.stack([joint * (1.0 - one), joint * one], dim=3).reshape(docs, bits, -1)
    return joint.mean(dim=0).reshape(bits, -1, 2)


def best_prior(windows: Tensor) -> Tensor:
    """Return log p(z_b | preceding bits) of the p that minimises the bound."""
    smoothed = windows + 1e-6  # p of a window that never occurs is undefined
    return torch.log(smoothed) - torch.log(smoothed.sum(dim=2, keepdim=True))


def cross_entropy(windows: Tensor, prior: Tensor) -> Tensor:
    """Return the bound on H(Z), in nats, for log p as in `best_prior`."""
    return -(windows * prior).sum()
