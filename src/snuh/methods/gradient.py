"""What the methods share that learn by gradient steps: how long, how fast, and when to stop."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch

from snuh.methods.estimator import HashingEstimator, TrainingData
from snuh.methods.limits import Limit
from snuh.methods.result import TrainingResult
from snuh.methods.sizes import BY_SIZE
from snuh.methods.training import Objective, TrainingPlan, train
from snuh.progress import OnProgress

FEWEST_EPOCHS, MOST_EPOCHS = 12, 200  # where the epochs are not given


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
        return int(np.clip(round(self.usual_steps / steps), FEWEST_EPOCHS, MOST_EPOCHS))
