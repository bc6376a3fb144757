"""The entropy of codes under a Markov model, which AMMI maximises.

Documents have independent bits with probabilities q; what is asked for is the entropy of the code of a random
document, a mixture of as many products as there are documents. A Markov model of that mixture, in which a bit
depends on the `order` bits before it, gives an upper bound:

    H(Z) <= - sum_b E log p(z_b | z_(b-order) ... z_(b-1)),    with equality for the best p if Z is Markov

The expectation needs only the probabilities of windows of order + 1 bits: products, within a document.
"""

from __future__ import annotations

import torch
from torch import Tensor


def window_probabilities(q: Tensor, order: int) -> Tensor:
    """Return the probability of each value of each bit's window, over all documents.

    Args:
        q: probabilities of a 1, (documents, bits).
        order: how many bits before it belong to a bit's window; before the first one there are zeros.

    Returns:
        (bits, 2**order, 2): by the number that the bits before it make, then by the bit itself.
    """
    docs, bits = q.shape
    padded = torch.cat([torch.zeros((docs, order), dtype=q.dtype), q], dim=1)
    joint = torch.ones((docs, bits, 1), dtype=q.dtype)
    for offset in range(order + 1):
        one = padded[:, offset : offset + bits, None]
        joint = torch.stack([joint * (1.0 - one), joint * one], dim=3).reshape(docs, bits, -1)
    return joint.mean(dim=0).reshape(bits, -1, 2)


def best_prior(windows: Tensor) -> Tensor:
    """Return the p that makes the bound least: log p(z_b | before) as `windows` has it."""
    safe = windows + 1e-6  # a window that never occurs would have no p
    return torch.log(safe) - torch.log(safe.sum(dim=2, keepdim=True))


def cross_entropy(windows: Tensor, prior: Tensor) -> Tensor:
    """Return the bound on H(Z), in nats, for log p as in `best_prior`."""
    return -(windows * prior).sum()
