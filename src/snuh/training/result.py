"""What learning leaves behind, whatever the method."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from snuh.encoder import Encoder
from snuh.errors import SnuhError
from snuh.progress import EpochReport

Stopped = Literal["patience", "epochs", "interrupted", "diverged", "solved"]
"""Why learning ended; "solved": the method has no epochs."""


class FailedFitError(SnuhError):
    """A fit whose codes are of no use."""


def check_whole(stopped: Stopped) -> None:
    """Raise where codes are no result: Ctrl-C cut training short, or its loss did not stay finite."""
    if stopped == "interrupted":
        raise KeyboardInterrupt
    if stopped == "diverged":
        raise FailedFitError("the loss did not stay finite")


@dataclass(frozen=True)
class Score:
    """The held-out score of an encoder, and whether its codes tell documents apart at all."""

    value: float
    alive: bool


@dataclass(frozen=True)
class TrainingResult:
    """The best encoder by held-out score, and how training went."""

    encoder: Encoder
    score: Score
    stopped: Stopped
    decoder: npt.NDArray[np.float32] | None = None
    best_epoch: int = 0  # counted from 1
    history: list[EpochReport] = field(default_factory=list)
