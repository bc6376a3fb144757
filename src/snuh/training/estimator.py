"""Base of all methods, as scikit-learn estimators: checks, held-out documents, the learnt encoder."""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from snuh.codes import check_bits
from snuh.encoder import Encoder
from snuh.errors import InputError, suggest
from snuh.features.vectors import split_rows
from snuh.features.weighting import check_matrix, unit_rows
from snuh.metrics import code_health
from snuh.progress import EpochReport, OnProgress, stage_callback
from snuh.training import VECTOR_METHODS
from snuh.training.distributed import Shard
from snuh.training.spectral import LSA, fit_lsa
from snuh.training.validation_score import HeldOutScore, Score

# The result of training, for all methods.

Stopped = Literal["patience", "epochs", "interrupted", "diverged", "solved"]
"""Why training ended; "solved": the method has no epochs."""


@dataclass(frozen=True)
class TrainingResult:
    """The best encoder by held-out score, and the history of training."""

    encoder: Encoder
    score: Score
    stopped: Stopped
    decoder: npt.NDArray[np.float32] | None = None
    best_epoch: int = 0  # counted from 1; 0: the start, or a method without epochs
    history: list[EpochReport] = field(default_factory=list)


# Ranges of numeric parameters, checked with the same messages for all methods.


@dataclass(frozen=True)
class Range:
    """The valid values of a numeric parameter; never negative."""

    above: float | None = None  # exclusive lower bound; None: 0 is valid
    below: float = np.inf  # exclusive upper bound, also after rounding to float32
    integer: bool = False
    optional: bool = False  # whether None is valid: the method resolves it

    def check(self, name: str, value: object) -> None:
        """Raise InputError if the value is not in the range."""
        if value is None and self.optional:
            return
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float | np.number)
            or not (isinstance(value, int) or np.isfinite(value))
        ):
            raise InputError(f"{name} must be a number, got {value!r}")
        if self.integer and not isinstance(value, int | np.integer):
            raise InputError(f"{name} must be an integer, got {value}")
        if value < 0 or (self.above is not None and value <= self.above):
            minimum = "0 or more" if self.above is None else f"above {self.above:g}"
            raise InputError(f"{name} must be {minimum}, got {value}")
        if isinstance(value, int) and value >= MAX_INTEGER:
            raise InputError(f"{name} must be below {min(self.below, MAX_INTEGER):g}, got {value}")
        if not np.float32(value) < self.below:
            raise InputError(f"{name} must be below {self.below:g}, got {value}")


def check_neighbors(neighbors: int, docs: int) -> None:
    """Raise InputError unless there are more documents than neighbours."""
    if docs <= neighbors:
        raise InputError(
            f"expected more documents than neighbors ({neighbors}), got n_samples = {docs}: "
            "add documents or set neighbors lower"
        )


HELD_OUT_FRACTION = 0.1
MAX_INTEGER = 2**63
MAX_HELD_OUT = 1_000
MIN_DOCS_TO_HOLD_OUT = 200  # a smaller corpus needs all documents for training
LSA_DIMS = 128


class DeadCodesWarning(UserWarning):
    """The codes do not distinguish documents."""


@dataclass(frozen=True)
class TrainingData:
    """Unit rows to train on, the held-out score, and the LSA space of the words of the training rows."""

    X: sparse.csr_matrix
    lsa: LSA
    score: Callable[[Encoder], Score]
    X_val: sparse.csr_matrix  # held-out rows, which the score is computed on
    shard: Shard | None = None  # if several processes train together
    vector_dims: int = 0  # the last columns of X that hold a vector, joined with the words
    graphs: list[dict[str, object]] = field(default_factory=list)  # facts about the graphs built so far

    @cached_property
    def words(self) -> sparse.csr_matrix:
        """The words of the training rows, of unit length."""
        return split_rows(self.X, self.vector_dims).words if self.vector_dims else self.X

    @property
    def vectors(self) -> npt.NDArray[np.float32] | None:
        """Their vectors of unit length, zero if missing; None for words alone."""
        return split_rows(self.X, self.vector_dims).vectors if self.vector_dims else None


# scikit-learn has no type stubs.
@dataclass(kw_only=True, eq=False, repr=False)
class HashingEstimator(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the methods: `fit(X)` learns `encoder_`, `transform(X)` gives packed codes (docs, bits / 8).

    A method is a dataclass whose fields are its parameters; those with a range or choices are checked.
    """

    n_bits: int = 64  # length of the codes
    seed: int = 0  # of all random numbers

    ranges: ClassVar[Mapping[str, Range]] = {"seed": Range(integer=True, below=2**32)}
    choices: ClassVar[Mapping[str, tuple[object, ...]]] = {}
    reads_vectors: ClassVar[bool] = False  # whether rows may be words joined with vectors

    def check_parameters(self) -> None:
        """Raise InputError if a parameter is invalid; called by `fit` before any work."""
        check_bits(self.n_bits)
        for name, valid in self.ranges.items():
            valid.check(name, getattr(self, name))
        for name, options in self.choices.items():
            _check_choice(name, getattr(self, name), options)

    def derived_parameters(self, docs: int) -> dict[str, float]:
        """Resolve parameters left as None for a training set of n documents."""
        return {}

    def _check_size(self, docs: int) -> None:
        """Raise InputError if there are too few documents for the parameters."""
        if docs < 2:
            raise InputError(f"expected at least 2 documents, got n_samples = {docs}")

    @abstractmethod
    def train(self, data: TrainingData, on_progress: OnProgress | None) -> TrainingResult:
        """Learn an encoder from unit rows; `fit` adds the checks of parameters and rows."""

    def fit(
        self,
        X: Any,  # anything scikit-learn takes as a matrix
        y: object = None,
        *,
        X_val: Any = None,
        vector_dims: int = 0,
        score: Callable[[Encoder], Score] | None = None,
        on_progress: OnProgress | None = None,
        train: Callable[[TrainingData], TrainingResult] | None = None,
    ) -> Self:
        """Learn codes from feature rows; labels are never used.

        Args:
            X: sparse or dense rows, one per document, such as TF-IDF.
            y: ignored, for compatibility with scikit-learn.
            X_val: held-out rows for selecting the epoch; a random part of X if not given.
            vector_dims: how many of the last columns are a vector, joined by `join_rows`; 0 for words alone.
            score: selects the epoch instead of the default held-out score, which uses no labels.
            on_progress: called for every stage and epoch.
            train: trains instead of this process, for example on several workers.
        """
        self.check_parameters()
        rows = self._checked_rows(X, reset=True)
        self._check_vectors(vector_dims, rows.shape[1])
        self._check_size(rows.shape[0])
        started = time.perf_counter()
        unit = unit_rows(rows)
        _check_distinct(unit)
        unit_val = None if X_val is None else unit_rows(self._checked_rows(X_val, reset=False))
        data = self.training_data(unit, unit_val, on_progress, vector_dims=vector_dims)
        if score is not None:
            data = replace(data, score=score)
        result = self.train(data, on_progress) if train is None else train(data)
        self.encoder_ = replace(result.encoder, unit_rows=True, vector_dims=vector_dims)
        self.decoder_ = result.decoder
        self.history_ = result.history
        health = code_health(self.encoder_.encode(rows))
        self.training_: dict[str, object] = {
            "seed": self.seed,
            "documents": int(data.X.shape[0]),
            "epochs": len(result.history),
            "best_epoch": result.best_epoch,
            "stopped": result.stopped,
            "score": result.score.value,
            "alive": result.score.alive,
            "distinct_codes": health.distinct_codes,
            "ones_fraction": [round(fraction, 3) for fraction in health.ones_fraction],
            "seconds": round(time.perf_counter() - started, 3),
        }
        if data.graphs:
            self.training_["graph"] = data.graphs[-1]
        _warn_if_dead(result)
        return self

    def transform(self, X: Any) -> npt.NDArray[np.uint8]:  # anything scikit-learn takes as a matrix
        """Return the packed codes (docs, bits / 8) of feature rows."""
        check_is_fitted(self)
        encoder: Encoder = self.encoder_
        return encoder.encode(self._checked_rows(X, reset=False))

    def _check_vectors(self, vector_dims: int, columns: int) -> None:
        if vector_dims and not self.reads_vectors:
            raise InputError(f"{type(self).__name__} reads words alone: {VECTOR_METHODS} read vectors too")
        if not 0 <= vector_dims < columns:
            raise InputError(f"vector_dims must be from 0 to {columns - 1}, got {vector_dims}")

    def _checked_rows(self, X: Any, *, reset: bool) -> sparse.csr_matrix:
        rows = check_matrix(X)
        try:
            validate_data(self, X, reset=reset, skip_check_array=True)  # checks the number of columns
        except ValueError as error:
            raise InputError(" ".join(str(error).split())) from None
        return rows

    def training_data(
        self,
        X: sparse.csr_matrix,
        X_val: sparse.csr_matrix | None = None,
        on_progress: OnProgress | None = None,
        *,
        vector_dims: int = 0,
    ) -> TrainingData:
        """Hold out rows unless X_val is given, and prepare LSA space and held-out score of unit rows."""
        report = stage_callback(on_progress, "similarity")
        rng = np.random.default_rng(int(self.seed))
        if X_val is None:
            X, X_val = hold_out(X, rng)
        if report is not None:
            report(0.0)
        words = split_rows(X, vector_dims).words if vector_dims else X
        lsa = fit_lsa(words, dims=LSA_DIMS, seed=int(self.seed))
        score = HeldOutScore(X, X_val, lsa, rng=rng, vector_dims=vector_dims)
        if report is not None:
            report(1.0)
        return TrainingData(X, lsa, score, X_val, vector_dims=vector_dims)

    def __sklearn_tags__(self) -> Any:  # scikit-learn's own type
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def _check_choice(name: str, value: object, options: tuple[object, ...]) -> None:
    if value in options and isinstance(value, type(options[0])):
        return
    if isinstance(options[0], bool):
        raise InputError(f"{name} must be true or false, got {value!r}")
    names = [str(option) for option in options]
    raise InputError(f'{name} must be one of {", ".join(names)}, got "{value}"{suggest(str(value), names)}')


def _warn_if_dead(result: TrainingResult) -> None:
    advice = "check that the documents share words"
    if result.history:
        advice = f"try a smaller beta or more epochs, or {advice}"
    if not result.score.alive:
        problem = "the codes are dead: they hardly distinguish documents"
    elif result.history and not result.history[-1].alive:
        used = f"those of epoch {result.best_epoch}" if result.best_epoch else "the initial ones"
        problem = f"the codes died during training, using {used}"
    else:
        return
    warnings.warn(f"{problem}; {advice}", DeadCodesWarning, stacklevel=3)


def _check_distinct(X: sparse.csr_matrix) -> None:
    filled = X[np.diff(X.indptr) > 0]
    if not filled.shape[0]:
        raise InputError(f"all {X.shape[0]} documents are empty: expected feature rows with values")
    sizes = np.diff(filled.indptr)
    if sizes.min() != sizes.max():
        return
    columns, values = filled.indices.reshape(-1, sizes[0]), filled.data.reshape(-1, sizes[0])
    if (columns == columns[0]).all() and (values == values[0]).all():
        raise InputError(
            f"all {filled.shape[0]} documents are equal (n_features = {X.shape[1]}): expected at least two "
            "that differ"
        )


def hold_out(X: sparse.csr_matrix, rng: np.random.Generator) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
    """Split off random rows for the score; a small corpus is scored on its training rows."""
    docs = X.shape[0]
    if docs < MIN_DOCS_TO_HOLD_OUT:
        return X, X
    order = rng.permutation(docs)
    count = min(MAX_HELD_OUT, int(docs * HELD_OUT_FRACTION))
    return X[np.sort(order[count:])], X[np.sort(order[:count])]
