"""Data-parallel training: each process draws from a shard of the documents; gradients are averaged.

Every process has the rows of all documents, since neighbours may be in any shard. Shards have equal sizes and
a batch is split evenly, so all processes take the same number of steps from the same initial weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from snuh.encoder import Encoder
from snuh.training.validation_score import Score

if TYPE_CHECKING:
    from torch import Tensor

    from snuh.training.tree_objective import Edges

Documents = npt.NDArray[np.int64]


class ProcessGroup(Protocol):
    """Processes that train together; all of them call the same functions in the same order."""

    rank: int  # of this process, counted from 0
    size: int

    def broadcast_parameters(self, parameters: list[Tensor]) -> None:
        """Replace the parameters of every process by those of rank 0."""
        ...

    def average_gradients(self, parameters: list[Tensor]) -> None:
        """Replace the gradient of each parameter by its mean over the processes."""
        ...

    def broadcast_score(self, score: Callable[[Encoder], Score] | None) -> Callable[[Encoder], Score]:
        """Return a score that rank 0 computes for all; the others may pass None."""
        ...


@dataclass(frozen=True)
class Shard:
    """What one process trains on."""

    documents: Documents  # rows to draw batches from
    edges: Edges | None  # of these documents; None: the method computes its own, or has none
    group: ProcessGroup


def shard_documents(docs: int, *, rank: int, size: int, seed: int) -> Documents:
    """Return the rows of one shard of a random partition, padded with rows of others to equal sizes."""
    order = np.random.default_rng([seed, size]).permutation(docs)
    shard: Documents = np.resize(order, -(-docs // size) * size)[rank::size]
    return shard


class TorchProcessGroup:
    """The default process group of PyTorch."""

    def __init__(self) -> None:
        import torch.distributed

        self._distributed = torch.distributed
        self.rank, self.size = torch.distributed.get_rank(), torch.distributed.get_world_size()

    def broadcast_parameters(self, parameters: list[Tensor]) -> None:
        """Replace the parameters of every process by those of rank 0."""
        for parameter in parameters:
            self._distributed.broadcast(parameter.detach(), src=0)

    def average_gradients(self, parameters: list[Tensor]) -> None:
        """Replace the gradient of each parameter by its mean over the processes, in one all-reduce."""
        import torch

        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        flat = torch.cat([gradient.ravel() for gradient in gradients]) / self.size
        self._distributed.all_reduce(flat)
        start = 0
        for parameter, gradient in zip(parameters, gradients, strict=True):
            gradient.copy_(flat[start : start + gradient.numel()].view_as(gradient))
            parameter.grad = gradient
            start += gradient.numel()

    def broadcast_score(self, score: Callable[[Encoder], Score] | None) -> Callable[[Encoder], Score]:
        """Return a score that rank 0 computes for all; the others may pass None."""
        import torch

        def broadcast(encoder: Encoder) -> Score:
            message = torch.zeros(2, dtype=torch.float64)
            if self.rank == 0 and score is not None:
                result = score(encoder)
                message = torch.tensor([result.value, float(result.alive)], dtype=torch.float64)
            self._distributed.broadcast(message, src=0)
            return Score(float(message[0]), bool(message[1]))

        return broadcast


@contextmanager
def torch_process_group() -> Iterator[TorchProcessGroup]:
    """Join PyTorch's process group (gloo) for the duration of the block."""
    import torch.distributed

    torch.distributed.init_process_group("gloo")
    try:
        yield TorchProcessGroup()
    finally:
        torch.distributed.destroy_process_group()
