"""Progress reports of a fit, passed to a callback."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

Stage = Literal["words", "rows", "vectors", "similarity", "graph", "trees", "training"]


@dataclass(frozen=True)
class EpochReport:
    """A finished epoch: the loss by named parts (means per document) and the held-out score."""

    epoch: int
    parts: Mapping[str, float]
    score: float
    best_score: float
    alive: bool
    seconds: float  # of training, excluding the evaluation


@dataclass(frozen=True)
class Progress:
    """The fraction `done` of a stage of the fit; `epoch` is set at the end of each epoch."""

    stage: Stage
    done: float
    epoch: EpochReport | None = None


OnProgress = Callable[[Progress], None]


def stage_callback(on_progress: OnProgress | None, stage: Stage) -> Callable[[float], None] | None:
    """Return a callback for one stage, which takes the fraction done."""
    if on_progress is None:
        return None
    return lambda done: on_progress(Progress(stage, done))
