"""From feature rows to a trained tree-structured model: graph, forests, edges, training."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
from scipy import sparse

from snuh.encoder import Encoder
from snuh.errors import InputError, suggest
from snuh.graph import DensePart, gaussian_affinity, nearest_neighbors
from snuh.methods.estimator import HashingEstimator, TrainingData
from snuh.methods.limits import Limit
from snuh.methods.training import TrainingPlan, TrainingResult, train
from snuh.methods.tree_objective import Correlation, Edges, TreeObjective, TreeSettings
from snuh.progress import OnProgress, stage_callback
from snuh.trees import Sampler, sample_edges

CHOICES = {
    "sampler": ("depth-first", "star"),
    "affinity": ("constant", "gaussian"),
    "correlation": ("encoder", "optimum", "prior", "none"),
    "threshold": ("half", "median"),
}
FEWEST_EPOCHS, MOST_EPOCHS = 12, 60  # where the epochs are not given
MEANS_SHARE = 0.25  # of the similarity, in a graph built anew


@dataclass(frozen=True)
class Additions:
    """What a method may add to the paper's graph and objective; nothing by default."""

    neighbor_words: float = 0.0  # weight of explaining a document's words by its neighbour's code
    graph_of_lsa: bool = False  # the graph joins LSA cosine to the cosine of the rows
    refresh: float = 0.0  # share of the epochs after which the graph is built anew, with the learnt means


class TreeHasher(HashingEstimator):
    """Base of the methods whose documents are correlated along forests of a neighbour graph."""

    usual_steps: ClassVar[int]  # of training, where the epochs are not given
    by_bits: ClassVar[Mapping[str, Mapping[int, float]]]  # where a parameter is None; between them by log2
    limits: ClassVar[Mapping[str, Limit]] = {
        "neighbors": Limit(above=0, whole=True),
        "trees": Limit(above=0, whole=True),
        "alpha": Limit(above=0),
        "sigma": Limit(above=0),
        "strength": Limit(below=1),
        "tau": Limit(above=0),
        "beta": Limit(optional=True),
        "word_dropout": Limit(below=1),
        "warmup": Limit(),
        "init_range": Limit(),
        "batch_size": Limit(above=0, whole=True),
        "learning_rate": Limit(above=0, optional=True),
        "epochs": Limit(above=0, whole=True, optional=True),
        "patience": Limit(above=0, whole=True),
        "clip": Limit(above=0),
        "seed": Limit(whole=True, below=2**32),
    }
    neighbors: int
    trees: int
    sampler: Sampler
    alpha: float
    affinity: Literal["constant", "gaussian"]
    sigma: float
    strength: float
    tau: float
    beta: float | None
    correlation: Correlation
    word_dropout: float | None
    warmup: float
    init_range: float
    threshold: Literal["half", "median"]
    batch_size: int
    learning_rate: float | None
    decay: bool
    epochs: int | None
    patience: int
    clip: float

    @abstractmethod
    def _additions(self) -> Additions:
        """What the method adds to the paper's graph and objective."""

    def check_parameters(self) -> None:
        """Raise InputError where a parameter has no usable value."""
        super().check_parameters()
        for name, known in CHOICES.items():
            value = getattr(self, name)
            if value not in known:
                options = ", ".join(known)
                raise InputError(
                    f'{name} must be one of {options}, got "{value}"{suggest(str(value), known)}'
                )
        for name, limit in self.limits.items():
            limit.check(name, getattr(self, name))
        if not isinstance(self.decay, bool):
            raise InputError(f"decay must be true or false, got {self.decay!r}")

    def _check_size(self, docs: int) -> None:
        if docs <= self.neighbors:
            raise InputError(
                f"expected more documents than neighbors ({self.neighbors}), got n_samples = {docs}: "
                "add documents or set neighbors lower"
            )

    def _train(self, data: TrainingData, on_progress: OnProgress | None) -> TrainingResult:
        rng = np.random.default_rng([int(self.seed), 1])  # the held-out part is drawn from seed alone
        additions = self._additions()
        epochs = self._epochs(data.X.shape[0])
        settings = TreeSettings(
            bits=self.n_bits,
            tau=self.tau,
            beta=self._chosen("beta"),
            correlation=self.correlation,
            neighbor_words=additions.neighbor_words,
            word_dropout=self._chosen("word_dropout"),
            refresh=max(1, round(additions.refresh * epochs)) if additions.refresh else 0,
            warmup=self.warmup,
            init_range=self.init_range,
            threshold=self.threshold,
            batch=int(self.batch_size),
        )
        beside = [DensePart(data.lsa.unit_values(data.X), 0.5)] if additions.graph_of_lsa else []

        def new_edges(encoder: Encoder) -> Edges:
            return self._sample_edges(data.X, _with_means(beside, encoder, data.X), rng, on_progress)

        objective = TreeObjective(
            data.X,
            self._sample_edges(data.X, beside, rng, on_progress),
            settings,
            generator=torch.Generator().manual_seed(int(self.seed)),
            new_edges=new_edges if additions.refresh else None,
        )
        plan = TrainingPlan(
            epochs=epochs,
            patience=int(self.patience),
            learning_rate=self._chosen("learning_rate"),
            decay=self.decay,
            clip=self.clip,
        )
        return train(objective, plan, score=data.score, rng=rng, on_progress=on_progress)

    def _chosen(self, name: str) -> float:
        """A parameter as given, or what its table says for codes of this length."""
        given = getattr(self, name)
        if given is not None:
            return float(given)
        table = self.by_bits[name]
        return float(np.interp(np.log2(self.n_bits), np.log2(list(table)), list(table.values())))

    def _epochs(self, docs: int) -> int:
        """The epochs as given, or those that make the method's usual number of steps, within bounds."""
        if self.epochs is not None:
            return int(self.epochs)
        steps = math.ceil(docs / self.batch_size)
        return int(np.clip(round(self.usual_steps / steps), FEWEST_EPOCHS, MOST_EPOCHS))

    def _sample_edges(
        self,
        X: sparse.csr_matrix,
        beside: list[DensePart],
        rng: np.random.Generator,
        on_progress: OnProgress | None,
    ) -> Edges:
        if self.correlation == "none" and not self._additions().neighbor_words:
            nothing = np.zeros(0, dtype=np.float32)
            return Edges(np.zeros((0, 2), dtype=np.int32), nothing, nothing)
        found = nearest_neighbors(
            X, k=int(self.neighbors), beside=beside, on_progress=stage_callback(on_progress, "graph")
        )
        merged = sample_edges(
            found.adjacency(),
            trees=int(self.trees),
            alpha=self.alpha,
            sampler=self.sampler,
            rng=rng,
            on_progress=stage_callback(on_progress, "trees"),
        )
        affinity = np.ones_like(merged.similarity)
        if self.affinity == "gaussian":
            affinity = gaussian_affinity(merged.similarity, sigma=self.sigma)
        return Edges(merged.pairs, merged.weight, (self.strength * affinity).astype(np.float32))


def _with_means(beside: list[DensePart], encoder: Encoder, X: sparse.csr_matrix) -> list[DensePart]:
    """Give the means learnt so far their share of the similarity; what was there keeps the rest."""
    means = encoder.values(X)
    means -= means.mean(axis=0)
    means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    others = [DensePart(part.rows, part.weight * (1 - MEANS_SHARE)) for part in beside]
    return [*others, DensePart(means, MEANS_SHARE)]
