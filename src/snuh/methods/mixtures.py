"""The prior of the two mixture methods: components with shares, and a head that tells them apart."""

from __future__ import annotations

import torch
from torch import Tensor


class Mixture:
    """Learnt log pi of the components, and for each a row of parameters.

    Args:
        components: how many.
        bits: the length of the codes.
        generator: of the start; the components start apart from each other.
    """

    def __init__(self, components: int, bits: int, *, generator: torch.Generator) -> None:
        self._shares = torch.zeros(components).requires_grad_()
        self.centers = torch.randn((components, bits), generator=generator).requires_grad_()
        self.parameters = [self._shares, self.centers]

    @property
    def log_weights(self) -> Tensor:
        """The logarithm of pi, (components,)."""
        return torch.log_softmax(self._shares, dim=0)
