"""Training with several workers: each draws from a share of the documents, gradients are averaged every step.

Every worker has the rows of all documents (neighbours may be anyone's), and so the same number of steps: the
shares have equal sizes, and a batch is split evenly. What is the same for all at the start stays the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from snuh.encoder import Encoder
from snuh.training.result import Score

if TYPE_CHECKING:
    from torch import Tensor

    from snuh.training.tree_objective import Edges

Documents = npt.NDArray[np.int64]


class Team(Protocol):
    """The workers that train together; all of them call the same functions in the same order."""

    rank: int  # of this worker, counted from 0
    size: int

    def align(self, parameters: list[Tensor]) -> None:
        """Give every worker the parameters of the first."""
        ...

    def average(self, parameters: list[Tensor]) -> None:
        """Replace each parameter's gradient by its mean over the workers."""
        ...

    def agree(self, score: Callable[[Encoder], Score] | None) -> Callable[[Encoder], Score]:
        """Return a score that the first worker computes, and all get; the others may have none."""
        ...


@dataclass(frozen=True)
class Share:
    """What one worker trains on."""

    documents: Documents  # rows to draw batches from
    edges: Edges | None  # of these documents, for methods with trees; None: the method finds its own
    team: Team


def share_of(docs: int, *, rank: int, size: int, seed: int) -> Documents:
    """Deal the rows out at random; where that leaves some over, shares are filled up with others' rows."""
    order = np.random.default_rng([seed, size]).permutation(docs)
    share: Documents = np.resize(order, -(-docs // size) * size)[rank::size]
    return share


class GlooTeam:
    """The processes of PyTorch's default process group."""

    def __init__(self) -> None:
        import torch.distributed as processes

        self._processes = processes
        self.rank, self.size = processes.get_rank(), processes.get_world_size()

    def align(self, parameters: list[Tensor]) -> None:
        """Give every worker the parameters of the first."""
        for parameter in parameters:
            self._processes.broadcast(parameter.detach(), src=0)

    def average(self, parameters: list[Tensor]) -> None:
        """Replace each parameter's gradient by its mean over the workers, in one message."""
        import torch

        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        together = torch.cat([gradient.ravel() for gradient in gradients]) / self.size
        self._processes.all_reduce(together)
        start = 0
        for parameter, gradient in zip(parameters, gradients, strict=True):
            gradient.copy_(together[start : start + gradient.numel()].view_as(gradient))
            parameter.grad = gradient
            start += gradient.numel()

    def agree(self, score: Callable[[Encoder], Score] | None) -> Callable[[Encoder], Score]:
        """Return a score that the first worker computes, and all get; the others may have none."""
        import torch

        def agreed(encoder: Encoder) -> Score:
            said = torch.zeros(2, dtype=torch.float64)
            if self.rank == 0 and score is not None:
                own = score(encoder)
                said = torch.tensor([own.value, float(own.alive)], dtype=torch.float64)
            self._processes.broadcast(said, src=0)
            return Score(float(said[0]), bool(said[1]))

        return agreed


@contextmanager
def team_of_processes() -> Iterator[GlooTeam]:
    """Join the processes that were started to train together, for the length of the block."""
    import torch.distributed as processes

    processes.init_process_group("gloo")
    try:
        yield GlooTeam()
    finally:
        processes.destroy_process_group()
