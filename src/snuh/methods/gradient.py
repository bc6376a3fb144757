"""Base of the methods trained by gradient steps: how long, how fast, and when to stop."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch

from snuh.methods.estimator import HashingEstimator, TrainingData
from snuh.methods.limits import Range
from snuh.methods.result import TrainingResult
from snuh.methods.sizes import DEFAULTS_BY_SIZE
from snuh.methods.training import Objective, TrainingPlan, train
from snuh.progress import OnProgress

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
            learning_rate=float(self.resolve("learning_rate", docs)),
            decay=self.decay,
            clip=float(self.clip),
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
