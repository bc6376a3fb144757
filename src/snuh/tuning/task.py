"""What all trials of a study share, and how one of them is measured."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from snuh.encoder import Encoder
from snuh.experiments.labels import LabelScore
from snuh.experiments.reach import ReachScore
from snuh.experiments.run import Select
from snuh.features import check_matrix
from snuh.methods import make
from snuh.methods.result import FailedFitError, Score, check_completed
from snuh.progress import OnProgress
from snuh.tuning.rows import Rows


class Task:
    """A method, the length of its codes and the rows to learn from: `task.measure(parameters)`.

    All trials have one seed. The held-out documents and the score follow from it and from the rows alone, so
    that every trial is measured in the same way. The score is `ReachScore` or, with `select="labels"`,
    precision by validation labels as in the paper; it chooses the epoch of a trial too, so that trials can be
    compared before they end.
    """

    def __init__(
        self, rows: Rows, method: str, *, bits: int, seed: int, select: Select, fixed: Mapping[str, Any]
    ) -> None:
        self.rows, self.method, self.bits, self.seed, self.select = rows, method, bits, seed, select
        self.fixed = dict(fixed)
        self._train, self._held = _split(rows, seed)
        if select == "labels":
            rows.labelled()

    @property
    def documents(self) -> int:
        """How many documents a trial learns from."""
        return int(self._train.shape[0])

    @cached_property
    def score(self) -> Callable[[Encoder], Score]:
        """What every trial is measured by, made when the first one is."""
        if self.select == "labels":
            return LabelScore(*self.rows.labelled())
        return ReachScore(self._train, self._held, seed=self.seed)

    def facts(self) -> dict[str, Any]:
        """Return what decides about a score beside the parameters that are tried."""
        return {
            "source": self.rows.source,
            "sha256": self.rows.sha256,
            "method": self.method,
            "bits": self.bits,
            "select": self.select,
            "seed": self.seed,
        }

    def measure(self, parameters: Mapping[str, Any], *, on_progress: OnProgress | None = None) -> float:
        """Fit and return the score; SnuhError where the fit fails, or its codes are dead.

        Ctrl-C raises KeyboardInterrupt: codes of a training that was cut short are no result.
        """
        estimator = make(self.method, bits=self.bits, seed=self.seed, parameters={**self.fixed, **parameters})
        with warnings.catch_warnings():
            from snuh.methods.estimator import DeadCodesWarning

            warnings.simplefilter("ignore", DeadCodesWarning)  # such a trial fails, with the reason
            estimator.fit(self._train, X_val=self._held, score=self.score, on_progress=on_progress)
        training = estimator.training_
        check_completed(training["stopped"])
        if not training["alive"]:
            raise FailedFitError("the codes are dead")
        return float(training["score"])


def _split(rows: Rows, seed: int) -> tuple[Any, Any]:  # whatever the rows are kept as
    """Return what is learnt from and what is held out: the documents of `val`, or those a fit would draw."""
    from snuh.methods.estimator import hold_out

    if rows.val is not None:
        return rows.train.X, rows.val.X
    return hold_out(check_matrix(rows.train.X), np.random.default_rng(seed))
