"""The result of training, for all methods."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from snuh.encoder import Encoder
from snuh.errors import SnuhError
from snuh.progress import EpochReport

Stopped = Literal["patience", "epochs", "interrupted", "diverged", "solved"]
"""Why training ended; "solved": the method has no epochs."""


class FailedFitError(SnuhError):
    """A fit without usable codes."""


def check_completed(stopped: Stopped) -> None:
    """Raise if training did not end normally: it was interrupted by Ctrl-C, or diverged."""
    if stopped == "interrupted":
        raise KeyboardInterrupt
    if stopped == "diverged":
        raise FailedFitError("the loss did not stay finite")


@dataclass(frozen=True)
class Score:
    """The held-out score of an encoder, and whether its codes distinguish documents at all."""

    value: float
    alive: bool


@dataclass(frozen=True)
class TrainingResult:
    """The best encoder by held-out score, and the history of training."""

    encoder: Encoder
    score: Score
    stopped: Stopped
    decoder: npt.NDArray[np.float32] | None = None
    best_epoch: int = 0  # counted from 1
    history: list[EpochReport] = field(default_factory=list)
