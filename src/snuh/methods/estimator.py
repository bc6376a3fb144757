"""What all methods share as scikit-learn estimators: checks, the held-out part, the encoder left behind."""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from snuh.codes import check_bits
from snuh.encoder import Encoder
from snuh.errors import InputError
from snuh.methods.lsa import LSA, fit_lsa
from snuh.methods.progress import OnProgress, stage_callback
from snuh.methods.selection import HeldOutScore
from snuh.methods.training import TrainingResult
from snuh.metrics import code_health

HELD_OUT_SHARE = 0.1
HELD_OUT_MOST = 1_000
HELD_OUT_FROM = 200  # documents; fewer are all needed for training
LSA_DIMS = 128


class DeadCodesWarning(UserWarning):
    """The codes do not tell documents apart."""


@dataclass(frozen=True)
class TrainingData:
    """Unit rows to train on, what is held out to score, and the LSA space of the training rows."""

    X: sparse.csr_matrix
    lsa: LSA
    score: HeldOutScore


# scikit-learn has no type stubs.
class HashingEstimator(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the methods: `fit(X)` learns `encoder_`, `transform(X)` gives packed codes (docs, bits / 8)."""

    n_bits: int
    seed: int

    def check_parameters(self) -> None:
        """Raise InputError where a parameter has no usable value; `fit` does so before any work."""
        check_bits(self.n_bits)

    def _check_size(self, docs: int) -> None:
        """Raise InputError where there are too few documents for the parameters."""

    @abstractmethod
    def _train(self, data: TrainingData, on_progress: OnProgress | None) -> TrainingResult:
        """Learn an encoder of unit rows."""

    def fit(
        self,
        X: Any,  # anything scikit-learn takes as a matrix
        y: object = None,
        *,
        X_val: Any = None,
        on_progress: OnProgress | None = None,
    ) -> Self:
        """Learn codes from feature rows; labels are never used.

        Args:
            X: sparse or dense rows, one a document; TF-IDF as it comes.
            y: ignored, here for scikit-learn.
            X_val: rows held out to choose the epoch; without them a random part of X is.
            on_progress: told about every stage and epoch.
        """
        self.check_parameters()
        rows = self._checked_rows(X, reset=True)
        self._check_size(rows.shape[0])
        started = time.perf_counter()
        unit, is_unit = _unit_rows(rows)
        _check_distinct(unit)
        held = None if X_val is None else _unit_rows(self._checked_rows(X_val, reset=False))[0]
        data = self._training_data(unit, held, on_progress)
        result = self._train(data, on_progress)
        self.encoder_ = result.encoder if is_unit else replace(result.encoder, unit_rows=True)
        self.history_ = result.history
        self.training_ = {
            "seed": self.seed,
            "documents": int(data.X.shape[0]),
            "epochs": len(result.history),
            "best_epoch": result.best_epoch,
            "stopped": result.stopped,
            "score": result.score,
            "alive": result.alive,
            "distinct_codes": code_health(self.encoder_.encode(rows)).distinct_codes,
            "seconds": round(time.perf_counter() - started, 3),
        }
        if not result.alive:
            warnings.warn(
                "the codes are dead: nearly all documents share one code. Try more epochs, a smaller beta, "
                "or check that the documents share words",
                DeadCodesWarning,
                stacklevel=2,
            )
        return self

    def transform(self, X: Any) -> npt.NDArray[np.uint8]:  # anything scikit-learn takes as a matrix
        """Return the packed codes (docs, bits / 8) of feature rows."""
        check_is_fitted(self)
        encoder: Encoder = self.encoder_
        return encoder.encode(self._checked_rows(X, reset=False))

    def _checked_rows(self, X: Any, *, reset: bool) -> sparse.csr_matrix:
        try:
            checked = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=np.float32)
        except ValueError as error:
            raise InputError(" ".join(str(error).split())) from None
        rows = sparse.csr_matrix(checked)
        rows.eliminate_zeros()
        rows.sort_indices()
        return rows

    def _training_data(
        self, X: sparse.csr_matrix, held: sparse.csr_matrix | None, on_progress: OnProgress | None
    ) -> TrainingData:
        report = stage_callback(on_progress, "similarity")
        rng = np.random.default_rng(self.seed)
        if held is None:
            X, held = _hold_out(X, rng)
        if report is not None:
            report(0.0)
        lsa = fit_lsa(X, dims=LSA_DIMS, seed=self.seed)
        score = HeldOutScore(X, held, lsa, rng=rng)
        if report is not None:
            report(1.0)
        return TrainingData(X, lsa, score)

    def __sklearn_tags__(self) -> Any:  # scikit-learn's own type
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def _unit_rows(X: sparse.csr_matrix) -> tuple[sparse.csr_matrix, bool]:
    """Scale rows to unit length; also say whether they had it already (empty rows aside)."""
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    if np.all((np.abs(lengths - 1.0) < 1e-3) | (lengths == 0)):
        return X, True
    scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    return sparse.csr_matrix(sparse.diags(scale.astype(np.float32)) @ X), False


def _check_distinct(X: sparse.csr_matrix) -> None:
    sizes = np.diff(X.indptr)
    if not sizes.any():
        raise InputError(
            f"all {X.shape[0]} documents are empty: expected feature rows with some value above 0"
        )
    first = X[int(np.flatnonzero(sizes)[0])]
    if sizes.min() == sizes.max() and not (sparse.vstack([first] * X.shape[0], format="csr") != X).nnz:
        raise InputError(f"all {X.shape[0]} documents are equal: expected at least two that differ")


def _hold_out(X: sparse.csr_matrix, rng: np.random.Generator) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
    """Split off a random part for the score; a small corpus is scored on what it trains on."""
    docs = X.shape[0]
    if docs < HELD_OUT_FROM:
        return X, X
    order = rng.permutation(docs)
    held = min(HELD_OUT_MOST, int(docs * HELD_OUT_SHARE))
    return X[np.sort(order[held:])], X[np.sort(order[:held])]
