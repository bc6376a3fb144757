"""q(z|x) of the tree objective, spelled out."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from scipy import sparse
from torch import Tensor
from torch.nn.functional import softplus

from snuh.methods.tree_objective import TreeObjective


@dataclass(frozen=True)
class Posterior:
    """Mean and deviation (documents, bits)."""

    mu: Tensor
    sigma: Tensor


def posterior(objective: TreeObjective, rows: sparse.csr_matrix) -> Posterior:
    """Compute q(z|x) of these rows with dense products."""
    bits = objective.method.n_bits
    outputs = torch.from_numpy(rows.toarray()) @ objective.weight + objective.bias
    mean, deviation = outputs[:, :bits], outputs[:, bits : 2 * bits]
    return Posterior(torch.sigmoid(mean / objective.method.tau), softplus(deviation))
