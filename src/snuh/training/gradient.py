"""What the methods share that learn by gradient steps: how long, how fast, and when to stop."""

from __future__ import annotations

import logging
import math
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from snuh.encoder import Encoder
from snuh.errors import InputError, SnuhError
from snuh.progress import EpochReport, OnProgress, Progress
from snuh.training.adam import Adam
from snuh.training.distributed import Team
from snuh.training.estimator import BY_SIZE, HashingEstimator, Limit, TrainingData
from snuh.training.result import Score, Stopped, TrainingResult

# The loop that every gradient method shares: Adam, clipping, a NaN guard, stopping without labels.

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


MIN_EPOCHS, MAX_EPOCHS = 12, 200  # where the epochs are not given


@dataclass(frozen=True)
class Start:
    """What an objective is made from."""

    data: TrainingData
    epochs: int
    rng: np.random.Generator  # of NumPy's part
    generator: torch.Generator  # of PyTorch's part
    on_progress: OnProgress | None

    @property
    def documents(self) -> npt.NDArray[np.int64]:
        """The rows to draw batches from: all, or a worker's share."""
        share = self.data.share
        return np.arange(self.data.X.shape[0]) if share is None else share.documents


@dataclass(kw_only=True, eq=False, repr=False)
class GradientHasher(HashingEstimator):
    """Base of the methods that minimise an `Objective` with the loop of `training`."""

    batch_size: int | None = 128  # documents in a step; None, where a method takes it: by the documents
    learning_rate: float | None = None  # of Adam, at the start; None: by the length of the codes
    decay: bool = True  # learning rate falls linearly to 0 over the epochs
    epochs: int | None = None  # at most; None: the method's usual number of steps, from 12 to 200 epochs
    patience: int = 10  # epochs without a better held-out score; half of the epochs are done in any case
    clip: float = 10.0  # largest norm of a gradient

    usual_steps: ClassVar[int] = 2_000  # of training, where the epochs are not given
    by_bits: ClassVar[Mapping[str, Mapping[int, float]]]  # where a parameter is None; between them by log2
    limits: ClassVar[Mapping[str, Limit]] = {
        **HashingEstimator.limits,
        "batch_size": Limit(above=0, whole=True),
        "learning_rate": Limit(above=0, optional=True),
        "epochs": Limit(above=0, whole=True, optional=True),
        "patience": Limit(above=0, whole=True),
        "clip": Limit(above=0),
    }
    choices: ClassVar[Mapping[str, tuple[object, ...]]] = {"decay": (True, False)}

    @abstractmethod
    def _objective(self, start: Start) -> Objective[Any]:
        """Return what is minimised."""

    def _train(self, data: TrainingData, on_progress: OnProgress | None) -> TrainingResult:
        team = None if data.share is None else data.share.team
        rank = 0 if team is None else team.rank
        rng = np.random.default_rng([int(self.seed), 1 + rank])  # the held-out part is drawn from seed alone
        generator = torch.Generator().manual_seed(int(self.seed) + rank)
        epochs = self._epochs(data.X.shape[0])
        plan = TrainingPlan(
            epochs=epochs,
            patience=int(self.patience),
            learning_rate=self.chosen("learning_rate"),
            decay=self.decay,
            clip=self.clip,
        )
        objective = self._objective(Start(data, plan.epochs, rng, generator, on_progress))
        return train(objective, plan, score=data.score, rng=rng, on_progress=on_progress, team=team)

    def chosen(self, name: str) -> float:
        """A parameter as given, or what its table says for codes of this length."""
        given = getattr(self, name)
        if given is not None:
            return float(given)
        table = self.by_bits[name]
        return float(np.interp(np.log2(self.n_bits), np.log2(list(table)), list(table.values())))

    def derived_parameters(self, docs: int) -> dict[str, float]:
        """Return what parameters that are None come to, for so many documents to train on."""
        derived = {name: self.chosen(name) for name in self.by_bits} | {"epochs": self._epochs(docs)}
        derived |= {name: self.by_size(name, docs) for name in BY_SIZE if hasattr(self, name)}
        return {name: value for name, value in derived.items() if getattr(self, name) is None}

    def by_size(self, name: str, docs: int) -> int:
        """A parameter as given, or what suits so many documents."""
        given = getattr(self, name)
        return BY_SIZE[name].at(docs) if given is None else int(given)

    def _epochs(self, docs: int) -> int:
        """The epochs as given, or those that make the method's usual number of steps, within bounds."""
        if self.epochs is not None:
            return int(self.epochs)
        steps = math.ceil(docs / self.by_size("batch_size", docs))
        return int(np.clip(round(self.usual_steps / steps), MIN_EPOCHS, MAX_EPOCHS))
