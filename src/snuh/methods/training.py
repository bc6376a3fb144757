"""The loop that every gradient method shares: Adam, clipping, a NaN guard, stopping without labels."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from snuh.encoder import Encoder
from snuh.errors import InputError, SnuhError
from snuh.methods.adam import Adam
from snuh.methods.result import Score, Stopped, TrainingResult
from snuh.methods.sharing import Team
from snuh.progress import EpochReport, OnProgress, Progress

logger = logging.getLogger(__name__)

Batch = TypeVar("Batch")
MAX_RECOVERIES = 3


class DivergedError(SnuhError):
    """A loss that does not stay finite."""


class Objective(Protocol[Batch]):
    """What a gradient method hands to `train`."""

    parameters: list[Tensor]

    @property
    def steps(self) -> int:
        """Batches in an epoch."""
        ...

    def batches(self, rng: np.random.Generator, *, epoch: int) -> Iterator[Batch]:
        """Draw the batches of one epoch, counted from 0."""
        ...

    def loss(self, batch: Batch, *, epoch: float) -> Mapping[str, Tensor]:
        """Return the loss by named parts, each a mean per document; their sum is minimised."""
        ...

    def encoder(self) -> Encoder:
        """Return the encoder as it is now."""
        ...

    def decoder(self) -> npt.NDArray[np.float32] | None:
        """Return what explains words by bits (terms, bits) as it is now, None where nothing does."""
        ...


@dataclass(frozen=True)
class TrainingPlan:
    """How to train, whatever the method."""

    epochs: int  # at most
    patience: int  # epochs without a better held-out score before stopping, in the second half
    learning_rate: float  # at the start; it falls linearly to 0 over the epochs if `decay`
    decay: bool
    clip: float  # largest norm of a gradient


@dataclass(frozen=True)
class _Best:
    """The best epoch so far."""

    score: Score
    epoch: int
    encoder: Encoder
    decoder: npt.NDArray[np.float32] | None


@dataclass
class _Run(Generic[Batch]):
    objective: Objective[Batch]
    plan: TrainingPlan
    score: Callable[[Encoder], Score]
    rng: np.random.Generator
    on_progress: OnProgress | None
    team: Team | None = None
    history: list[EpochReport] = field(default_factory=list)
    best: _Best | None = None
    recoveries: int = 0

    def __post_init__(self) -> None:
        if self.team is not None:
            self.team.align(self.objective.parameters)
        self.adam = Adam(self.objective.parameters, clip=self.plan.clip)

    def epochs(self) -> Stopped:
        for epoch in range(self.plan.epochs):
            start = time.perf_counter()
            parts = self._guarded_epoch(epoch)
            self._finish_epoch(epoch, parts, start)
            if 2 * (epoch + 1) >= self.plan.epochs and self._is_stale():
                return "patience"
        return "epochs"

    def _guarded_epoch(self, epoch: int) -> dict[str, float]:
        """Run an epoch; where the loss stops being finite, go back to its start with a smaller step."""
        while True:
            saved = [parameter.detach().clone() for parameter in self.objective.parameters]
            parts = self._epoch(epoch)
            if parts is not None:
                return parts
            self.recoveries += 1
            if self.recoveries > MAX_RECOVERIES:
                raise DivergedError(
                    f"the loss was not finite in epoch {epoch + 1}, {self.recoveries} times over: "
                    "use a smaller learning_rate or clip, or check the features for extreme values"
                )
            logger.warning("the loss was not finite in epoch %d: trying again with half the step", epoch + 1)
            with torch.no_grad():
                for parameter, value in zip(self.objective.parameters, saved, strict=True):
                    parameter.copy_(value)
            self.adam.forget()

    def _epoch(self, epoch: int) -> dict[str, float] | None:
        totals: dict[str, float] = {}
        steps = self.objective.steps
        for step, batch in enumerate(self.objective.batches(self.rng, epoch=epoch)):
            now = epoch + step / steps
            parts = self.objective.loss(batch, epoch=now)
            loss = sum(parts.values(), start=torch.zeros(()))
            # In a team the averaged gradient tells, so that all workers do the same.
            is_lost = self.team is None and not math.isfinite(loss.item())
            if is_lost or not self._update(loss, now):
                return None
            for name, value in parts.items():
                totals[name] = totals.get(name, 0.0) + value.item() / steps
            if self.on_progress is not None and step % 16 == 0:
                self.on_progress(Progress("training", now / self.plan.epochs))
        return totals

    def _update(self, loss: Tensor, now: float) -> bool:
        """Take one step of Adam; False, and no step, where the gradient is not finite."""
        rate = self.plan.learning_rate * 0.5**self.recoveries
        if self.plan.decay:
            rate *= 1.0 - now / self.plan.epochs
        self.adam.drop_gradients()
        loss.backward()  # type: ignore[no-untyped-call]
        if self.team is not None:
            self.team.average(self.objective.parameters)
        return self.adam.step(rate)

    def _finish_epoch(self, epoch: int, parts: dict[str, float], start: float) -> None:
        seconds = time.perf_counter() - start
        encoder = self.objective.encoder()
        score = self.score(encoder)
        if self.best is None or _rank(score) > _rank(self.best.score):
            self.best = _Best(score, epoch, encoder, self.objective.decoder())
        report = EpochReport(epoch + 1, parts, score.value, self.best.score.value, score.alive, seconds)
        self.history.append(report)
        if self.on_progress is not None:
            self.on_progress(Progress("training", (epoch + 1) / self.plan.epochs, report))

    def _is_stale(self) -> bool:
        """Whether enough epochs passed without a better score; epochs of dead codes do not count.

        Not asked in the first half of the epochs: on few documents the score falls for long before it rises.
        """
        if self.best is None or not self.best.score.alive:
            return False
        living = sum(report.alive for report in self.history[self.best.epoch + 1 :])
        return living >= self.plan.patience


def _rank(score: Score) -> tuple[bool, float]:
    """Living codes before dead ones, then the score."""
    return score.alive, score.value


def train(
    objective: Objective[Batch],
    plan: TrainingPlan,
    *,
    score: Callable[[Encoder], Score],
    rng: np.random.Generator,
    on_progress: OnProgress | None = None,
    team: Team | None = None,
) -> TrainingResult:
    """Minimise the objective and keep the encoder with the best held-out score.

    Ctrl-C, or a loss that stays infinite, after the first epoch ends training and keeps the best so far.
    """
    run = _Run(objective, plan, score, rng, on_progress, team)
    try:
        stopped = run.epochs()
    except KeyboardInterrupt:
        if run.best is None:
            raise
        stopped = "interrupted"
    except DivergedError as error:
        if run.best is None:
            raise
        logger.warning("%s; the best encoder so far is kept", error)
        stopped = "diverged"
    if run.best is None:
        raise InputError(f"epochs must be at least 1, got {plan.epochs}")
    best = run.best
    return TrainingResult(best.encoder, best.score, stopped, best.decoder, best.epoch + 1, run.history)
