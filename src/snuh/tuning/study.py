"""A study: trials sampled by Optuna, stored in a file so that a later call can resume them.

The file is Optuna's journal, one JSON line per event. A parameter is stored as the index of its value in the
search space, so that the sampler knows which values are close to each other.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Literal, Self

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, IntDistribution
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from optuna.trial import FrozenTrial, TrialState

from snuh.errors import InputError
from snuh.io import reporting_as_input_error
from snuh.tuning.objective import SearchSpace, Value

NAME = "snuh tune"
FINGERPRINT = "subject"  # the user attribute of a study with everything that its scores depend on
SOURCE = "source"  # the name of the documents may change; their checksum may not
PRUNING_STEPS = 12  # trials are compared at these fractions of their epochs: no method has fewer epochs
STARTUP_TRIALS = 5  # that are never pruned
FIRST_PRUNING_STEP = 4  # before it the score mostly depends on the initialization

State = Literal["complete", "pruned", "failed"]
OPTUNA_STATES: Mapping[State, TrialState] = {
    "complete": TrialState.COMPLETE,
    "pruned": TrialState.PRUNED,
    "failed": TrialState.FAIL,
}


@dataclass(frozen=True)
class FinishedTrial:
    """A trial that ended by itself."""

    number: int
    parameters: Mapping[str, Value]
    state: State
    score: float | None  # if complete
    error: str | None  # if failed
    seconds: float


class TrialPruned(Exception):  # noqa: N818  # Optuna's name
    """Raised by `Trial.report` for a trial that falls behind the others."""


class Trial:
    """A trial in progress."""

    def __init__(self, study: optuna.Study, trial: optuna.Trial, parameters: Mapping[str, Value]) -> None:
        self.parameters = parameters
        self._study, self._trial = study, trial
        self._step = 0

    def report(self, done: float, score: float) -> None:
        """Report the score when the fraction `done` of the trial is done; TrialPruned ends the trial."""
        step = int(done * PRUNING_STEPS + 1e-9)
        if step <= self._step or step < FIRST_PRUNING_STEP:
            return
        self._step = step
        self._trial.report(score, step)
        if self._trial.should_prune():
            raise TrialPruned

    def finish(
        self, state: State, *, seconds: float, score: float | None = None, error: str | None = None
    ) -> None:
        """Write the end of the trial to the file."""
        self._trial.set_user_attr("seconds", round(seconds, 3))
        self._trial.set_user_attr("error", error)
        self._study.tell(self._trial, score, state=OPTUNA_STATES[state])

    def discard(self) -> None:
        """Make the trial count for nothing: it was interrupted, or repeats another one."""
        self._study.tell(self._trial, state=TrialState.FAIL)


class Study:
    """The trials of a file: `with Study(path, fingerprint, space, seed=0) as study`; one process at a time.

    `fingerprint` is everything that scores depend on, and the name of the source. A file with another one
    raises InputError.
    """

    def __init__(self, path: Path, fingerprint: Mapping[str, Any], space: SearchSpace, *, seed: int) -> None:
        self.path, self._space = path, space
        with reporting_as_input_error(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("ab")
        try:
            _lock(self._file, path)
            _check_and_repair(path)
            self._study = _load(path)
            self._check_fingerprint(json.loads(json.dumps(fingerprint)))
            self._prepare(seed)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def trials(self) -> list[FinishedTrial]:
        """Return the finished trials in their order, without discarded ones."""
        trials = self._study.get_trials(deepcopy=False)
        return [self._finished(trial) for trial in trials if _counts(trial)]

    def best_trial(self) -> FinishedTrial | None:
        """Return the trial with the best score, the first of equal ones; None if none is complete."""
        complete = [trial for trial in self.trials() if trial.score is not None]
        return max(complete, key=lambda trial: (trial.score, -trial.number), default=None)

    def default_trial(self) -> FinishedTrial | None:
        """Return the trial with the method's defaults; None if it has not finished yet."""
        same = (trial for trial in self.trials() if trial.parameters == self._space.defaults)
        return next(same, None)

    def ask(self) -> Trial | None:
        """Return a new trial, the defaults first; None if the search space is exhausted."""
        tried = [trial.parameters for trial in self.trials()]
        if len(tried) >= self._space.size:
            return None
        distributions: dict[str, BaseDistribution] = {
            name: IntDistribution(0, len(values) - 1) for name, values in self._space.values.items()
        }
        while True:
            asked = self._study.ask(distributions)
            trial = Trial(self._study, asked, self._space.from_indices(asked.params))
            if trial.parameters not in tried:
                return trial
            trial.discard()
            # The sampler may suggest the same parameters again and again.
            self._study.enqueue_trial(self._draw_indices())

    def _draw_indices(self) -> dict[str, int]:
        return {name: int(self._rng.integers(len(values))) for name, values in self._space.values.items()}

    def _check_fingerprint(self, fingerprint: Mapping[str, Any]) -> None:
        known = self._study.user_attrs.get(FINGERPRINT)
        if known is None:
            self._study.set_user_attr(FINGERPRINT, fingerprint)
            return
        for name in fingerprint:
            if name != SOURCE and known.get(name) != fingerprint[name]:
                before, now = _shorten(known.get(name)), _shorten(fingerprint[name])
                raise InputError(
                    f"{self.path} has trials on {known.get(SOURCE)} with {name} {before}, now it is {now}: "
                    "their scores are not comparable, choose another file with --study"
                )

    def _prepare(self, seed: int) -> None:
        before = self._study.get_trials(deepcopy=False)
        # A resumed study must not repeat its earlier draws.
        self._rng = np.random.default_rng([seed, len(before)])
        self._study.sampler = optuna.samplers.TPESampler(seed=int(self._rng.integers(2**32)))
        self._study.pruner = optuna.pruners.MedianPruner(STARTUP_TRIALS)
        for trial in before:
            if trial.state == TrialState.RUNNING:  # its process was killed
                self._study.tell(trial.number, state=TrialState.FAIL)
        is_waiting = any(trial.state == TrialState.WAITING for trial in before)
        if not is_waiting and self.default_trial() is None:
            self._study.enqueue_trial(self._space.to_indices(self._space.defaults))

    def _finished(self, trial: FrozenTrial) -> FinishedTrial:
        states = {optuna_state: state for state, optuna_state in OPTUNA_STATES.items()}
        state = states[trial.state]
        return FinishedTrial(
            trial.number,
            self._space.from_indices(trial.params),
            state,
            trial.value if state == "complete" else None,
            trial.user_attrs["error"],
            trial.user_attrs["seconds"],
        )


def _counts(trial: FrozenTrial) -> bool:
    return trial.state.is_finished() and "seconds" in trial.user_attrs


def _shorten(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."


class _AlreadyLocked(JournalFileOpenLock):
    """Replaces Optuna's lock, which would survive a killed process; ours already excludes other processes."""

    def acquire(self) -> bool:
        return True

    def release(self) -> None:
        pass


class _Journal(JournalFileBackend):
    """The journal file; a full disk is reported as InputError."""

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        with reporting_as_input_error(self._file_path):
            super().append_logs(logs)


def _lock(file: BinaryIO, path: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(
            f"{path} is in use by another process: wait for it, or choose another file with --study"
        ) from None


def _check_and_repair(path: Path) -> None:
    """Raise InputError if the file is not a study; remove an incomplete last line."""
    content = path.read_bytes()
    if not content:
        return
    first, _, _ = content.partition(b"\n")
    try:
        is_study = json.loads(first)["study_name"] == NAME
    except (ValueError, KeyError, TypeError):
        is_study = False
    if not is_study:
        raise InputError(f'{path} is not a study of "snuh tune": choose another file with --study')
    os.truncate(path, content.rfind(b"\n") + 1)


def _load(path: Path) -> optuna.Study:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        is_new = not path.stat().st_size
        storage = JournalStorage(_Journal(str(path), _AlreadyLocked(str(path))))
        if is_new:
            return optuna.create_study(storage=storage, study_name=NAME, direction="maximize")
        return optuna.load_study(storage=storage, study_name=NAME)
    except InputError:
        raise
    except Exception as error:  # damaged journals raise many kinds of exceptions in Optuna
        raise InputError(
            f"{path} is damaged ({type(error).__name__}): choose another file with --study"
        ) from error
