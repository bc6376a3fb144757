"""What a long fit tells its caller while it runs: one callback, one small report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

Stage = Literal["words", "rows", "similarity", "graph", "trees", "training"]


@dataclass(frozen=True)
class EpochReport:
    """One finished epoch: the loss by its named parts (means per document) and the held-out score."""

    epoch: int
    parts: Mapping[str, float]
    score: float
    best_score: float
    alive: bool
    seconds: float  # of training, without the score


@dataclass(frozen=True)
class Progress:
    """How far a stage of the fit has come; `epoch` comes with the end of each epoch."""

    stage: Stage
    done: float
    epoch: EpochReport | None = None


OnProgress = Callable[[Progress], None]


def stage_callback(on_progress: OnProgress | None, stage: Stage) -> Callable[[float], None] | None:
    """Turn the fit's callback into a plain callback of one stage that takes the share done."""
    if on_progress is None:
        return None
    return lambda done: on_progress(Progress(stage, done))
