"""What all methods share as scikit-learn estimators: checks, the held-out part, the encoder left behind."""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from snuh.codes import check_bits
from snuh.encoder import Encoder
from snuh.errors import InputError, suggest
from snuh.features.weighting import check_matrix, unit_rows
from snuh.metrics import code_health
from snuh.progress import OnProgress, stage_callback
from snuh.training.distributed import Share
from snuh.training.result import Score, TrainingResult
from snuh.training.spectral import LSA, fit_lsa
from snuh.training.validation_score import HeldOutScore

# What numbers a parameter may be, checked with one message for all of them.


@dataclass(frozen=True)
class Limit:
    """A range of numbers, from 0 where nothing else is said."""

    above: float | None = None  # strictly; without it 0 is allowed
    below: float = np.inf  # strictly, also once it is a float32
    whole: bool = False
    optional: bool = False  # None stands for a value that the method chooses

    def check(self, name: str, value: object) -> None:
        """Raise InputError where the value is not within the limit."""
        if value is None and self.optional:
            return
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float | np.number)
            or not np.isfinite(value)
        ):
            raise InputError(f"{name} must be a number, got {value!r}")
        if self.whole and not isinstance(value, int | np.integer):
            raise InputError(f"{name} must be a whole number, got {value}")
        if value < 0 or (self.above is not None and value <= self.above):
            least = "0 or more" if self.above is None else f"above {self.above:g}"
            raise InputError(f"{name} must be {least}, got {value}")
        if not np.float32(value) < self.below:
            raise InputError(f"{name} must be below {self.below:g}, got {value}")


def check_neighbors(neighbors: int, docs: int) -> None:
    """Raise InputError where there are not more documents than neighbours asked for."""
    if docs <= neighbors:
        raise InputError(
            f"expected more documents than neighbors ({neighbors}), got n_samples = {docs}: "
            "add documents or set neighbors lower"
        )


HELD_OUT_SHARE = 0.1
HELD_OUT_MAX = 1_000
HELD_OUT_FROM = 200  # documents; fewer are all needed for training
LSA_DIMS = 128


class DeadCodesWarning(UserWarning):
    """The codes do not tell documents apart."""


@dataclass(frozen=True)
class TrainingData:
    """Unit rows to train on, what is held out to score, and the LSA space of the training rows."""

    X: sparse.csr_matrix
    lsa: LSA
    score: Callable[[Encoder], Score]
    X_held: sparse.csr_matrix  # what the score is made of
    share: Share | None = None  # of one worker of several
    graphs: list[dict[str, object]] = field(default_factory=list)  # how those built so far were searched for


# scikit-learn has no type stubs.
@dataclass(kw_only=True, eq=False, repr=False)
class HashingEstimator(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the methods: `fit(X)` learns `encoder_`, `transform(X)` gives packed codes (docs, bits / 8).

    A method is a dataclass, its fields are its parameters; those with a limit or choices are checked.
    """

    n_bits: int = 64  # length of the codes
    seed: int = 0  # of everything random

    limits: ClassVar[Mapping[str, Limit]] = {"seed": Limit(whole=True, below=2**32)}
    choices: ClassVar[Mapping[str, tuple[object, ...]]] = {}

    def check_parameters(self) -> None:
        """Raise InputError where a parameter has no usable value; `fit` does so before any work."""
        check_bits(self.n_bits)
        for name, limit in self.limits.items():
            limit.check(name, getattr(self, name))
        for name, known in self.choices.items():
            _check_choice(name, getattr(self, name), known)

    def derived_parameters(self, docs: int) -> dict[str, float]:
        """Return what parameters that are None come to, for so many documents to train on."""
        return {}

    def _check_size(self, docs: int) -> None:
        """Raise InputError where there are too few documents for the parameters."""
        if docs < 2:
            raise InputError(f"expected at least 2 documents, got n_samples = {docs}")

    @abstractmethod
    def _train(self, data: TrainingData, on_progress: OnProgress | None) -> TrainingResult:
        """Learn an encoder of unit rows."""

    def fit(
        self,
        X: Any,  # anything scikit-learn takes as a matrix
        y: object = None,
        *,
        X_val: Any = None,
        score: Callable[[Encoder], Score] | None = None,
        on_progress: OnProgress | None = None,
        train: Callable[[TrainingData], TrainingResult] | None = None,
    ) -> Self:
        """Learn codes from feature rows; labels are never used.

        Args:
            X: sparse or dense rows, one a document; TF-IDF as it comes.
            y: ignored, here for scikit-learn.
            X_val: rows held out to choose the epoch; without them a random part of X is.
            score: what chooses the epoch instead of the usual score, which sees no labels.
            on_progress: told about every stage and epoch.
            train: what trains instead of this process, such as several workers.
        """
        self.check_parameters()
        rows = self._checked_rows(X, reset=True)
        self._check_size(rows.shape[0])
        started = time.perf_counter()
        unit = unit_rows(rows)
        _check_distinct(unit)
        held = None if X_val is None else unit_rows(self._checked_rows(X_val, reset=False))
        data = self._training_data(unit, held, on_progress)
        if score is not None:
            data = replace(data, score=score)
        result = self._train(data, on_progress) if train is None else train(data)
        self.encoder_ = replace(result.encoder, unit_rows=True)
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
            "ones_share": [round(share, 3) for share in health.ones_fraction],
            "seconds": round(time.perf_counter() - started, 3),
        }
        if data.graphs:
            self.training_["graph"] = data.graphs[-1]
        _warn_of_dead_codes(result)
        return self

    def transform(self, X: Any) -> npt.NDArray[np.uint8]:  # anything scikit-learn takes as a matrix
        """Return the packed codes (docs, bits / 8) of feature rows."""
        check_is_fitted(self)
        encoder: Encoder = self.encoder_
        return encoder.encode(self._checked_rows(X, reset=False))

    def _checked_rows(self, X: Any, *, reset: bool) -> sparse.csr_matrix:
        rows = check_matrix(X)
        try:
            validate_data(self, X, reset=reset, skip_check_array=True)  # as many columns as in fit
        except ValueError as error:
            raise InputError(" ".join(str(error).split())) from None
        return rows

    def _training_data(
        self, X: sparse.csr_matrix, held: sparse.csr_matrix | None, on_progress: OnProgress | None
    ) -> TrainingData:
        report = stage_callback(on_progress, "similarity")
        rng = np.random.default_rng(int(self.seed))
        if held is None:
            X, held = hold_out(X, rng)
        if report is not None:
            report(0.0)
        lsa = fit_lsa(X, dims=LSA_DIMS, seed=int(self.seed))
        score = HeldOutScore(X, held, lsa, rng=rng)
        if report is not None:
            report(1.0)
        return TrainingData(X, lsa, score, held)

    def __sklearn_tags__(self) -> Any:  # scikit-learn's own type
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def _check_choice(name: str, value: object, known: tuple[object, ...]) -> None:
    if value in known and isinstance(value, type(known[0])):
        return
    if isinstance(known[0], bool):
        raise InputError(f"{name} must be true or false, got {value!r}")
    options = [str(option) for option in known]
    raise InputError(
        f'{name} must be one of {", ".join(options)}, got "{value}"{suggest(str(value), options)}'
    )


def _warn_of_dead_codes(result: TrainingResult) -> None:
    advice = "check that the documents share words"
    if result.history:
        advice = f"try a smaller beta or more epochs, or {advice}"
    if not result.score.alive:
        problem = "the codes are dead: they hardly tell documents apart"
    elif result.history and not result.history[-1].alive:
        problem = f"the codes died in training, those of epoch {result.best_epoch} are kept"
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
    """Split off a random part for the score; a small corpus is scored on what it trains on."""
    docs = X.shape[0]
    if docs < HELD_OUT_FROM:
        return X, X
    order = rng.permutation(docs)
    held = min(HELD_OUT_MAX, int(docs * HELD_OUT_SHARE))
    return X[np.sort(order[held:])], X[np.sort(order[:held])]


# Parameters of the tree methods that go by the number of documents where not given; without PyTorch.
#
# On some hundreds of documents twenty neighbours are a good part of the corpus, and few of them are about the
# same thing; and batches of a hundred leave too few steps before the divergences outweigh what the decoder
# has
# learnt. With the numbers for thousands, `snuh` ended near chance on 300 short texts.


@dataclass(frozen=True)
class BySize:
    """A number that grows with the documents, one for every `per` of them, within bounds."""

    per: int
    least: int
    most: int  # as on any corpus of thousands

    def at(self, docs: int) -> int:
        """Return the number for so many documents."""
        return min(self.most, max(self.least, docs // self.per))


BY_SIZE: Mapping[str, BySize] = {
    "batch_size": BySize(per=10, least=32, most=128),
    "neighbors": BySize(per=100, least=5, most=20),
}


def usual(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters with what None stands for on a corpus of thousands, where that goes by the size."""
    return {
        name: BY_SIZE[name].most if value is None and name in BY_SIZE else value
        for name, value in parameters.items()
    }
