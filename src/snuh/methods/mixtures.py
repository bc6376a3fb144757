"""The mixture prior of GMSH and BMSH."""

from __future__ import annotations

import torch
from torch import Tensor


class Mixture:
    """Trained mixture weights pi, and a row of parameters for each component.

    Args:
        components: number of components.
        bits: the length of the codes.
        generator: for the initial parameters, which differ between components.
    """

    def __init__(self, components: int, bits: int, *, generator: torch.Generator) -> None:
        self._logits = torch.zeros(components).requires_grad_()
        self.centers = torch.randn((components, bits), generator=generator).requires_grad_()
        self.parameters = [self._logits, self.centers]

    @property
    def log_weights(self) -> Tensor:
        """Log pi, (components,)."""
        return torch.log_softmax(self._logits, dim=0)
