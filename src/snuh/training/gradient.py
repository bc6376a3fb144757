"""Base of the methods trained by gradient steps: how long, how fast, and when to stop."""

from __future__ import annotations

import logging
import math
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse
from torch import Tensor

from snuh.encoder import Encoder
from snuh.errors import InputError, SnuhError
from snuh.progress import EpochReport, OnProgress, Progress
from snuh.training import DEFAULTS_BY_SIZE
from snuh.training.distributed import ProcessGroup
from snuh.training.estimator import HashingEstimator, Range, Stopped, TrainingData, TrainingResult
from snuh.training.validation_score import Score

# The training loop of the gradient methods: Adam, clipping, recovery from NaN, early stopping.

logger = logging.getLogger(__name__)

Batch = TypeVar("Batch")
MAX_RECOVERIES = 3


class DivergedError(SnuhError):
    """Training diverged: the loss is not finite."""


class Objective(Protocol[Batch]):
    """What `train` minimises."""

    parameters: list[Tensor]

    @property
    def steps(self) -> int:
        """Batches in an epoch."""
        ...

    def batches(self, rng: np.random.Generator, *, epoch: int) -> Iterator[Batch]:
        """Yield the batches of an epoch; epochs count from 0."""
        ...

    def loss(self, batch: Batch, *, epoch: float) -> Mapping[str, Tensor]:
        """Return the loss by named parts, each a mean per document; their sum is minimised."""
        ...

    def encoder(self) -> Encoder:
        """Return a copy of the current encoder."""
        ...

    def decoder(self) -> npt.NDArray[np.float32] | None:
        """Return a copy of the word weights of each bit (terms, bits); None without a word decoder."""
        ...


@dataclass(frozen=True)
class TrainingPlan:
    """Settings of the loop."""

    epochs: int  # at most
    patience: int  # epochs without a better held-out score before stopping, in the second half
    learning_rate: float  # initial
    decay: bool  # whether it falls linearly to 0 over the epochs
    clip: float  # maximum norm of the gradient
    score_start: bool = False  # whether the codes before the first epoch are a candidate, as epoch 0


@dataclass(frozen=True)
class _Best:
    """The best epoch so far."""

    score: Score
    epoch: int  # counted from 1; 0: before training
    encoder: Encoder
    decoder: npt.NDArray[np.float32] | None


@dataclass
class _Trainer(Generic[Batch]):
    objective: Objective[Batch]
    plan: TrainingPlan
    score: Callable[[Encoder], Score]
    rng: np.random.Generator
    on_progress: OnProgress | None
    group: ProcessGroup | None = None
    history: list[EpochReport] = field(default_factory=list)
    best: _Best | None = None
    recoveries: int = 0

    def __post_init__(self) -> None:
        self._reset_optimizer()

    def _reset_optimizer(self) -> None:
        self.optimizer = torch.optim.Adam(self.objective.parameters, lr=self.plan.learning_rate, fused=True)

    def run(self) -> Stopped:
        if self.plan.score_start:
            self._score_start()
        for epoch in range(self.plan.epochs):
            start = time.perf_counter()
            if self.group is not None:
                # In every epoch: with another number of threads, sums are rounded differently.
                self.group.broadcast_parameters(self.objective.parameters)
            parts = self._guarded_epoch(epoch)
            self._finish_epoch(epoch, parts, start)
            # Not in the first half: on small corpora the score falls for many epochs before it rises.
            if 2 * (epoch + 1) >= self.plan.epochs and self._is_stale():
                return "patience"
        return "epochs"

    def _score_start(self) -> None:
        if self.group is not None:
            self.group.broadcast_parameters(self.objective.parameters)
        encoder = self.objective.encoder()
        # The decoder has learnt nothing yet.
        self.best = _Best(self.score(encoder), 0, encoder, None)

    def _guarded_epoch(self, epoch: int) -> dict[str, float]:
        """Run an epoch; if the loss is not finite, restore the weights and halve the learning rate."""
        while True:
            saved = [parameter.detach().clone() for parameter in self.objective.parameters]
            parts = self._epoch(epoch)
            if parts is not None:
                return parts
            self.recoveries += 1
            if self.recoveries > MAX_RECOVERIES:
                raise DivergedError(
                    f"the loss was not finite in epoch {epoch + 1}, {self.recoveries} times: "
                    "use a smaller learning_rate or clip, or check the features for extreme values"
                )
            logger.warning("the loss was not finite in epoch %d: halving the learning rate", epoch + 1)
            with torch.no_grad():
                for parameter, value in zip(self.objective.parameters, saved, strict=True):
                    parameter.copy_(value)
            self._reset_optimizer()

    def _epoch(self, epoch: int) -> dict[str, float] | None:
        totals: dict[str, float] = {}
        steps = self.objective.steps
        for step, batch in enumerate(self.objective.batches(self.rng, epoch=epoch)):
            now = epoch + step / steps
            parts = self.objective.loss(batch, epoch=now)
            loss = sum(parts.values(), start=torch.zeros(()))
            # In a process group the averaged gradient decides, so that all processes do the same.
            has_diverged = self.group is None and not math.isfinite(loss.item())
            if has_diverged or not self._step(loss, now):
                return None
            for name, value in parts.items():
                totals[name] = totals.get(name, 0.0) + value.item() / steps
            if self.on_progress is not None and step % 16 == 0:
                self.on_progress(Progress("training", now / self.plan.epochs))
        return totals

    def _step(self, loss: Tensor, now: float) -> bool:
        """Take a step of Adam; return False, without a step, if the gradient is not finite."""
        rate = self.plan.learning_rate * 0.5**self.recoveries
        if self.plan.decay:
            rate *= 1.0 - now / self.plan.epochs
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        if self.group is not None:
            self.group.average_gradients(self.objective.parameters)
        norm = clip_gradients(self.objective.parameters, self.plan.clip)
        if not torch.isfinite(norm):
            return False
        self.optimizer.param_groups[0]["lr"] = rate
        self.optimizer.step()
        return True

    def _finish_epoch(self, epoch: int, parts: dict[str, float], start: float) -> None:
        seconds = time.perf_counter() - start
        encoder = self.objective.encoder()
        score = self.score(encoder)
        if self.best is None or self._is_better(score, self.best):
            self.best = _Best(score, epoch + 1, encoder, self.objective.decoder())
        report = EpochReport(epoch + 1, parts, score.value, self.best.score.value, score.alive, seconds)
        self.history.append(report)
        if self.on_progress is not None:
            self.on_progress(Progress("training", (epoch + 1) / self.plan.epochs, report))

    @staticmethod
    def _is_better(score: Score, best: _Best) -> bool:
        # A score equal to that of the start is better: there is a decoder too.
        return _rank(score) > _rank(best.score) or (best.epoch == 0 and _rank(score) == _rank(best.score))

    def _is_stale(self) -> bool:
        """Whether patience has run out; epochs with dead codes do not count."""
        if self.best is None or not self.best.score.alive:
            return False
        epochs_since = sum(report.alive for report in self.history[self.best.epoch :])
        return epochs_since >= self.plan.patience


def clip_gradients(parameters: list[Tensor], max_norm: float) -> Tensor:
    """Scale the gradients down to a total norm of at most `max_norm`, and return their norm before.

    Like `torch.nn.utils.clip_grad_norm_`, but without multiplying gradients that need no clipping by 1, which
    takes 4 % of a step, and with dot products, which take half as long as torch's norm.
    """
    gradients = [parameter.grad.view(-1) for parameter in parameters if parameter.grad is not None]
    norm = torch.stack([gradient.dot(gradient) for gradient in gradients]).sum().sqrt()
    if norm > max_norm:
        torch.nn.utils.clip_grads_with_norm_(parameters, max_norm, norm)
    return norm


def _rank(score: Score) -> tuple[bool, float]:
    """Order scores: codes that are alive before dead ones, then by value."""
    return score.alive, score.value


def train(
    objective: Objective[Batch],
    plan: TrainingPlan,
    *,
    score: Callable[[Encoder], Score],
    rng: np.random.Generator,
    on_progress: OnProgress | None = None,
    group: ProcessGroup | None = None,
) -> TrainingResult:
    """Minimise the objective and return the encoder with the best held-out score.

    With `score_start` in the plan, that may be the encoder that training started from.
    After the first epoch, Ctrl-C or divergence ends training and the best encoder so far is returned.
    """
    trainer = _Trainer(objective, plan, score, rng, on_progress, group)
    try:
        stopped = trainer.run()
    except KeyboardInterrupt:
        if not trainer.history:
            raise
        stopped = "interrupted"
    except DivergedError as error:
        if not trainer.history:
            raise
        logger.warning("%s; keeping the best encoder so far", error)
        stopped = "diverged"
    if trainer.best is None:
        raise InputError(f"epochs must be at least 1, got {plan.epochs}")
    best = trainer.best
    return TrainingResult(best.encoder, best.score, stopped, best.decoder, best.epoch, trainer.history)


MIN_EPOCHS, MAX_EPOCHS = 12, 200  # if `epochs` is None


@dataclass(frozen=True)
class Start:
    """What an objective is built from, besides the parameters of its method."""

    data: TrainingData
    rng: np.random.Generator  # for NumPy
    generator: torch.Generator  # for PyTorch
    on_progress: OnProgress | None

    @property
    def documents(self) -> npt.NDArray[np.int64]:
        """The rows to draw batches from: all, or a worker's shard."""
        shard = self.data.shard
        return np.arange(self.data.X.shape[0]) if shard is None else shard.documents


@dataclass(kw_only=True, eq=False, repr=False)
class GradientHasher(HashingEstimator):
    """Base of the methods that minimise an `Objective` with the loop of `training`."""

    batch_size: int | None = 128  # documents in a step; None, if the method allows it: by the documents
    learning_rate: float | None = None  # initial learning rate of Adam; None: by the length of the codes
    decay: bool = True  # whether the learning rate falls linearly to 0 over the epochs
    epochs: int | None = None  # at most; None: the method's default number of steps, from 12 to 200 epochs
    patience: int = 10  # epochs without a better held-out score; half of the epochs are done in any case
    clip: float = 10.0  # maximum norm of a gradient

    default_steps: ClassVar[int] = 2_000  # of training, if `epochs` is None
    defaults_by_bits: ClassVar[Mapping[str, Mapping[int, float]]]  # log2-interpolated between lengths
    ranges: ClassVar[Mapping[str, Range]] = {
        **HashingEstimator.ranges,
        "batch_size": Range(above=0, integer=True),
        "learning_rate": Range(above=0, optional=True),
        "epochs": Range(above=0, integer=True, optional=True),
        "patience": Range(above=0, integer=True),
        "clip": Range(above=0),
    }
    choices: ClassVar[Mapping[str, tuple[object, ...]]] = {"decay": (True, False)}

    def rate_factor(self, X: sparse.csr_matrix) -> float:
        """Return the factor of the learning rate for these training rows."""
        return 1.0

    @property
    def has_trained_start(self) -> bool:
        """Whether the initial weights already give useful codes, so that training must improve on them."""
        return False

    @abstractmethod
    def objective(self, start: Start) -> Objective[Any]:
        """Return the objective to minimise."""

    def train(self, data: TrainingData, on_progress: OnProgress | None) -> TrainingResult:
        """Learn an encoder from unit rows."""
        group = None if data.shard is None else data.shard.group
        rank = 0 if group is None else group.rank
        rng = np.random.default_rng([int(self.seed), 1 + rank])  # the held-out part is drawn from seed alone
        generator = torch.Generator().manual_seed(int(self.seed) + rank)
        docs = data.X.shape[0]
        plan = TrainingPlan(
            epochs=int(self.resolve("epochs", docs)),
            patience=int(self.patience),
            learning_rate=float(self.resolve("learning_rate", docs)) * self.rate_factor(data.words),
            decay=self.decay,
            clip=float(self.clip),
            score_start=self.has_trained_start,
        )
        objective = self.objective(Start(data, rng, generator, on_progress))
        return train(objective, plan, score=data.score, rng=rng, on_progress=on_progress, group=group)

    def derived_parameters(self, docs: int) -> dict[str, float]:
        """Resolve parameters left as None for a training set of n documents."""
        unset = [field.name for field in fields(self) if getattr(self, field.name) is None]
        return {name: self.resolve(name, docs) for name in unset}

    def resolve(self, name: str, docs: int) -> float:
        """Return a parameter, or its default for a training set of n documents if it is None."""
        value: float | None = getattr(self, name)
        return self._default(name, docs) if value is None else value

    def _default(self, name: str, docs: int) -> float:
        if name == "epochs":
            steps = math.ceil(docs / self.resolve("batch_size", docs))
            return int(np.clip(round(self.default_steps / steps), MIN_EPOCHS, MAX_EPOCHS))
        if name in DEFAULTS_BY_SIZE:
            return DEFAULTS_BY_SIZE[name].at(docs)
        table = self.defaults_by_bits[name]
        return float(np.interp(np.log2(self.n_bits), np.log2(list(table)), list(table.values())))


# Weights that change during training; `epoch` counts from 0 and is fractional within an epoch.


def linear_warmup(epoch: float, epochs: float) -> float:
    """Rise linearly from 0 to 1 over the first `epochs`, then stay at 1."""
    return min(1.0, epoch / epochs) if epochs else 1.0


def linear_schedule(epoch: float, epochs: float, *, start: float, end: float) -> float:
    """Move linearly from `start` to `end` over the first `epochs`, then stay at `end`."""
    return start + (end - start) * linear_warmup(epoch, epochs)
