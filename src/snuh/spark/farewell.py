"""Why a team of workers ended early: the one that fails tells the others before it leaves them.

Who is left by another sees only that nobody answers. So the reason is in the store by which the team found
together, where the first worker looks for it; if none is there, a worker was lost.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Self

from snuh.errors import SnuhError
from snuh.spark.failures import LostWorkerError, named_error

REASON = "snuh-failure"
PATIENCE = timedelta(seconds=30)


@dataclass(frozen=True)
class Failure:
    """What ended a training."""

    kind: str  # the name of an error
    reason: str  # in one line
    is_loss: bool = False  # of a worker

    @classmethod
    def of(cls, error: Exception, rank: int) -> Self:
        """Describe what a worker raised."""
        kind, reason = type(error).__name__, " ".join(str(error).split())
        if not isinstance(error, SnuhError):
            reason = f"training failed in worker {rank + 1}: {kind}: {reason}".removesuffix(": ")
        return cls(kind, reason)

    def as_error(self) -> SnuhError:
        """Return what the driver raises."""
        return LostWorkerError(self.reason) if self.is_loss else named_error(self.kind, self.reason)


def failure_of(error: Exception, *, rank: int) -> Failure:
    """Tell the others what a worker raised, and return what ended the training."""
    from torch.distributed import TCPStore  # type: ignore[attr-defined]  # its own, though not marked so

    # Where PyTorch has it for the workers that it starts.
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    if not _is_by_others(error):
        failure = Failure.of(error, rank)
        with suppress(RuntimeError):  # nobody is left to be told
            store = TCPStore(host, port, is_master=False, timeout=PATIENCE)
            store.set(REASON, json.dumps([failure.kind, failure.reason]))
        return failure
    store = TCPStore(host, port, is_master=False, timeout=PATIENCE)
    if store.check([REASON]):
        return Failure(*json.loads(store.get(REASON)))
    return Failure("", f"a worker does not answer any more: {' '.join(str(error).split())}", is_loss=True)


def _is_by_others(error: Exception) -> bool:
    """Tell whether it is what the workers' way to talk to each other raises where one is gone."""
    return isinstance(error, RuntimeError) and "gloo" in str(error)
