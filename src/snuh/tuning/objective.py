"""The search space of each method, and the objective: the score of a fit with given parameters.

The space is one literal table of the values to try for each parameter. The values of `snuh` are the paper's:
learning rate, batch size, tau, trees and neighbours from its section on experiments, alpha and beta from its
supplement. `snuh-plus` adds higher learning rates, like its defaults.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from snuh.corpus import Document, FractionCallback, MatrixSource, MatrixSplit, TextSource
from snuh.encoder import Encoder
from snuh.errors import InputError, check_arguments
from snuh.experiments.corpora import DocumentsChecksum, sha256_of_rows
from snuh.experiments.run import FailedFitError, Select, check_completed
from snuh.experiments.scores import LabelScore, RandomWalkScore
from snuh.features import TfidfFeatures, check_matrix
from snuh.hasher import text_rows
from snuh.methods import make
from snuh.progress import OnProgress
from snuh.training.validation_score import Score

# The definitions of the scores: trials scored by another one are not comparable, so a change here makes
# `Study` refuse the files made before it.
RANDOM_WALK_SCORE, LABEL_SCORE = "random walk, version 1", "precision@100 by labels, version 1"


@dataclass(frozen=True)
class TuningData:
    """The training documents, and the validation documents if the source has any."""

    source: str
    sha256: str  # of ids, texts (or rows), labels and splits, in their order
    train: MatrixSplit
    val: MatrixSplit | None

    def labelled_splits(self) -> tuple[MatrixSplit, MatrixSplit]:
        """Return both splits; InputError if one of them or its labels are missing."""
        if self.val is None:
            raise InputError(
                f"--select labels needs documents of the split val, {self.source} has none: "
                "add some, or leave out --select"
            )
        for name, split in (("train", self.train), ("val", self.val)):
            if not any(split.labels):
                raise InputError(
                    f"--select labels needs labels, {self.source} has none in the split {name}: "
                    "add some, or leave out --select"
                )
        return self.train, self.val


class Objective:
    """The score of a method as a function of its parameters: `objective(parameters)`.

    All trials have the same seed. The held-out documents and the score depend on it and on the documents
    only, so trials are comparable. The score is `RandomWalkScore` or, with `select="labels"`, precision by
    validation labels as in the paper. It also selects the epoch of a trial, so that trials can be compared
    before they end.
    """

    def __init__(
        self, data: TuningData, method: str, *, bits: int, seed: int, select: Select, fixed: Mapping[str, Any]
    ) -> None:
        self.data, self.method, self.bits, self.seed, self.select = data, method, bits, seed, select
        self.fixed = dict(fixed)
        self._train, self._held_out = _split(data, seed)
        if select == "labels":
            data.labelled_splits()

    @property
    def documents(self) -> int:
        """The number of training documents of a trial."""
        return int(self._train.shape[0])

    @cached_property
    def score(self) -> Callable[[Encoder], Score]:
        """The score of all trials, prepared on first use."""
        if self.select == "labels":
            return LabelScore(*self.data.labelled_splits())
        return RandomWalkScore(self._train, self._held_out, seed=self.seed)

    def fingerprint(self) -> dict[str, Any]:
        """Return what scores depend on, apart from the tuned parameters."""
        return {
            "source": self.data.source,
            "sha256": self.data.sha256,
            "method": self.method,
            "bits": self.bits,
            "select": self.select,
            "score": LABEL_SCORE if self.select == "labels" else RANDOM_WALK_SCORE,
            "seed": self.seed,
        }

    def __call__(self, parameters: Mapping[str, Any], *, on_progress: OnProgress | None = None) -> float:
        """Fit and return the score; SnuhError if the fit fails or its codes are dead.

        Ctrl-C raises KeyboardInterrupt: the codes of an interrupted training are not a result.
        """
        estimator = make(self.method, bits=self.bits, seed=self.seed, parameters={**self.fixed, **parameters})
        with warnings.catch_warnings():
            from snuh.training.estimator import DeadCodesWarning

            warnings.simplefilter("ignore", DeadCodesWarning)  # such a trial fails below
            estimator.fit(self._train, X_val=self._held_out, score=self.score, on_progress=on_progress)
        training = estimator.training_
        check_completed(training["stopped"])
        if not training["alive"]:
            raise FailedFitError("the codes are dead")
        return float(training["score"])


def read_tuning_data(
    source: TextSource | MatrixSource, features: Mapping[str, Any], *, on_progress: OnProgress | None = None
) -> TuningData:
    """Read a source as a fit does."""
    if isinstance(source, MatrixSource):
        splits = source.splits
        return TuningData(source.name, sha256_of_rows(splits), splits["train"], splits.get("val"))
    check_arguments(TfidfFeatures, features, what="the features' settings")
    recording = _RecordingSource(source)
    X, X_val = text_rows(recording, TfidfFeatures(**features), on_progress)
    train = MatrixSplit(X, recording.ids["train"], recording.labels["train"])
    val = None if X_val is None else MatrixSplit(X_val, recording.ids["val"], recording.labels["val"])
    return TuningData(source.name, recording.sha256, train, val)


class _RecordingSource(TextSource):
    """Wraps a source and records ids, labels and checksum of its latest reading."""

    def __init__(self, source: TextSource) -> None:
        self.name = source.name
        self._source = source

    def documents(self, progress: FractionCallback | None = None) -> Iterator[Document]:
        self.ids: dict[str, list[str]] = {"train": [], "val": [], "test": []}
        self.labels: dict[str, list[tuple[str, ...]]] = {"train": [], "val": [], "test": []}
        checksum = DocumentsChecksum()
        for doc in self._source.documents(progress):
            split = doc.split or "train"
            self.ids[split].append(doc.id)
            self.labels[split].append(doc.labels)
            checksum.add(doc)
            yield doc
        self.sha256 = checksum.sha256


def _split(data: TuningData, seed: int) -> tuple[Any, Any]:  # sparse or dense matrices
    """Return training and held-out rows: the split val, or the part that a fit would hold out."""
    from snuh.training.estimator import hold_out

    if data.val is not None:
        return data.train.X, data.val.X
    return hold_out(check_matrix(data.train.X), np.random.default_rng(seed))


# The search space

Value: TypeAlias = int | float
Values: TypeAlias = Mapping[str, tuple[Value, ...]]

TENTHS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
HUNDREDTHS = (0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.1)
UP_TO_20 = tuple(range(1, 21))

OPTIMIZER: Values = {"learning_rate": (0.0005, 0.001, 0.003), "batch_size": (32, 64, 128)}
PAPER: Values = {
    **OPTIMIZER,
    "tau": TENTHS,
    "alpha": TENTHS,
    "beta": HUNDREDTHS,
    "neighbors": UP_TO_20,
    "trees": UP_TO_20,
}
NETWORK: Values = {
    **OPTIMIZER,
    "beta": (0.01, 0.03, 0.1, 0.3, 1.0),
    "depth": (0, 1, 2),
    "dropout": (0.0, 0.1, 0.2, 0.3),
}

SEARCH_SPACES: Mapping[str, Values] = {
    "snuh-plus": {**PAPER, "learning_rate": (0.0005, 0.001, 0.003, 0.006, 0.01)},
    "snuh": PAPER,
    "corrsh": {**NETWORK, "rank": (5, 10, 20)},
    "ammi": {
        "learning_rate": (0.003, 0.01, 0.02, 0.05),
        "batch_size": (32, 64, 128),
        "entropy": (1.5, 2.0, 3.0, 4.0),
        "order": (1, 2, 3, 4),
    },
    "pairrec": {**OPTIMIZER, "dropout": NETWORK["dropout"], "neighbors": (10, 25, 50, 100)},
    "wish": {**NETWORK, "alpha": (0.1, 1.0, 10.0), "dims": (50, 100, 200)},
    "rbsh": {
        **OPTIMIZER,
        "beta": (0.0, 0.01, 0.04, 0.1),
        "neighbors": (25, 50, 100, 200),
        "rank": (1.0, 2.0, 5.0, 10.0),
    },
    "bmsh": {**NETWORK, "components": (5, 10, 20, 40)},
    "gmsh": {**NETWORK, "components": (5, 10, 20, 40)},
    "nash": NETWORK,
    "nbrreg": {**NETWORK, "neighbors": (5, 10, 20, 50)},
    "vdsh": NETWORK,
    "itq": {"iterations": (10, 25, 50, 100, 200)},
    "sth": {"neighbors": (5, 10, 25, 50, 100), "penalty": (0.1, 1.0, 10.0, 100.0)},
    "sph": {"tail": (0.0, 0.01, 0.02, 0.05, 0.1)},
    "lsh": {},
}


@dataclass(frozen=True)
class SearchSpace:
    """The values of each parameter in ascending order, always including the method's default."""

    values: Values
    defaults: Mapping[str, Value]

    @property
    def size(self) -> int:
        """The number of combinations."""
        return math.prod(len(values) for values in self.values.values())

    def to_indices(self, parameters: Mapping[str, Value]) -> dict[str, int]:
        """Return the index of each parameter's value."""
        return {name: values.index(parameters[name]) for name, values in self.values.items()}

    def from_indices(self, indices: Mapping[str, int]) -> dict[str, Value]:
        """Return the parameters at these indices."""
        return {name: values[indices[name]] for name, values in self.values.items()}


def check_tunable(method: str, *, bits: int, seed: int, fixed: Mapping[str, Any]) -> None:
    """Raise InputError, before anything is read, if `fixed` is invalid or leaves nothing to tune."""
    make(method, bits=bits, seed=seed, parameters=fixed).check_parameters()
    if SEARCH_SPACES[method].keys() <= fixed.keys():
        reason = "--set fixes all its parameters" if SEARCH_SPACES[method] else "it has no parameters to tune"
        raise InputError(f"{method} cannot be tuned: {reason}")


def build_search_space(
    method: str, *, bits: int, seed: int, fixed: Mapping[str, Any], docs: int
) -> SearchSpace:
    """Return the search space of a method for n training documents, without the `fixed` parameters."""
    estimator = make(method, bits=bits, seed=seed, parameters=fixed)
    resolved = estimator.get_params() | estimator.derived_parameters(docs)
    table = SEARCH_SPACES[method]
    defaults = {name: resolved[name] for name in table if name not in fixed}
    values = {name: tuple(sorted({*table[name], default})) for name, default in defaults.items()}
    return SearchSpace(values, defaults)
