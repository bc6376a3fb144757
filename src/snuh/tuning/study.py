"""A study: trials in a file, chosen by Optuna, that a later call goes on with.

The file is Optuna's journal: a line of JSON for each thing that happens. A parameter is kept as the place of
its value in the grid, so that the sampler knows which values are near each other.
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
from snuh.tuning.grids import Grid, Value

NAME = "snuh tune"
SUBJECT = "subject"  # the attribute of a study that says what it is about
SOURCE = "source"  # the name of its documents, which may change; their checksum may not
STEPS = 12  # at which trials are compared, whatever their epochs: the fewest that a method has by itself
STARTUP = 5  # trials that are never given up
FIRST_STEP = 4  # to be compared; before it the score is mostly that of the start

End = Literal["done", "given up", "failed"]


@dataclass(frozen=True)
class Done:
    """A trial that came to an end by itself."""

    number: int
    parameters: Mapping[str, Value]
    end: End
    score: float | None  # only where it is done
    error: str | None  # only where it failed
    seconds: float


class GivenUpError(Exception):
    """A trial that falls behind the others; raised by `Trial.report`."""


class Trial:
    """A trial under way."""

    def __init__(self, study: optuna.Study, trial: optuna.Trial, parameters: Mapping[str, Value]) -> None:
        self.parameters = parameters
        self._study, self._trial = study, trial
        self._step = 0

    def report(self, done: float, score: float) -> None:
        """Say what score the trial has when it is done to the share `done`; GivenUpError ends it."""
        step = int(done * STEPS + 1e-9)
        if step <= self._step or step < FIRST_STEP:
            return
        self._step = step
        self._trial.report(score, step)
        if self._trial.should_prune():
            raise GivenUpError

    def finish(
        self, end: End, *, seconds: float, score: float | None = None, error: str | None = None
    ) -> None:
        """Put the end of the trial into the file."""
        states = {"done": TrialState.COMPLETE, "given up": TrialState.PRUNED, "failed": TrialState.FAIL}
        self._trial.set_user_attr("seconds", round(seconds, 3))
        self._trial.set_user_attr("error", error)
        self._study.tell(self._trial, score, state=states[end])

    def drop(self) -> None:
        """Let the trial count for nothing: it was interrupted, or is one that was done before."""
        self._study.tell(self._trial, state=TrialState.FAIL)


class Study:
    """The trials of a file: `with Study(path, subject, grid, seed=0) as study`; one process at a time.

    `subject` says what decides about a score, and names the source. A file about something else raises
    InputError.
    """

    def __init__(self, path: Path, subject: Mapping[str, Any], grid: Grid, *, seed: int) -> None:
        self.path, self._grid = path, grid
        with reporting_as_input_error(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("ab")
        try:
            _lock(self._file, path)
            _check_and_repair(path)
            self._study = _load(path)
            self._check(json.loads(json.dumps(subject)))
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

    def trials(self) -> list[Done]:
        """Return the trials that count, in their order."""
        found = self._study.get_trials(deepcopy=False)
        return [self._done(trial) for trial in found if _counts(trial)]

    def best(self) -> Done | None:
        """Return the trial with the best score, the first of equal ones; None where none is done."""
        done = [trial for trial in self.trials() if trial.score is not None]
        return max(done, key=lambda trial: (trial.score, -trial.number), default=None)

    def defaults(self) -> Done | None:
        """Return the trial with the method's defaults; None where it is not done yet."""
        same = (trial for trial in self.trials() if trial.parameters == self._grid.defaults)
        return next(same, None)

    def next(self) -> Trial | None:
        """Return a new trial, the defaults first; None where nothing new is left to try."""
        tried = [trial.parameters for trial in self.trials()]
        if len(tried) >= self._grid.size:
            return None
        distributions: dict[str, BaseDistribution] = {
            name: IntDistribution(0, len(values) - 1) for name, values in self._grid.values.items()
        }
        while True:
            asked = self._study.ask(distributions)
            trial = Trial(self._study, asked, self._grid.at(asked.params))
            if trial.parameters not in tried:
                return trial
            trial.drop()
            # The sampler may well ask for it again, and again.
            self._study.enqueue_trial(self._draw())

    def _draw(self) -> dict[str, int]:
        return {name: int(self._rng.integers(len(values))) for name, values in self._grid.values.items()}

    def _check(self, subject: Mapping[str, Any]) -> None:
        known = self._study.user_attrs.get(SUBJECT)
        if known is None:
            self._study.set_user_attr(SUBJECT, subject)
            return
        for name in subject:
            if name != SOURCE and known.get(name) != subject[name]:
                held, asked = _short(known.get(name)), _short(subject[name])
                raise InputError(
                    f"{self.path} holds trials on {known.get(SOURCE)} with {name} {held}, now it is {asked}: "
                    "their scores do not compare, choose another file with --study"
                )

    def _prepare(self, seed: int) -> None:
        before = self._study.get_trials(deepcopy=False)
        # A study that is gone on with must not draw what it drew before.
        self._rng = np.random.default_rng([seed, len(before)])
        self._study.sampler = optuna.samplers.TPESampler(seed=int(self._rng.integers(2**32)))
        self._study.pruner = optuna.pruners.MedianPruner(STARTUP)
        for trial in before:
            if trial.state == TrialState.RUNNING:  # of a process that was killed
                self._study.tell(trial.number, state=TrialState.FAIL)
        is_waiting = any(trial.state == TrialState.WAITING for trial in before)
        if not is_waiting and self.defaults() is None:
            self._study.enqueue_trial(self._grid.places(self._grid.defaults))

    def _done(self, trial: FrozenTrial) -> Done:
        ends: dict[TrialState, End] = {TrialState.COMPLETE: "done", TrialState.PRUNED: "given up"}
        end = ends.get(trial.state, "failed")
        return Done(
            trial.number,
            self._grid.at(trial.params),
            end,
            trial.value if end == "done" else None,
            trial.user_attrs["error"],
            trial.user_attrs["seconds"],
        )


def _counts(trial: FrozenTrial) -> bool:
    return trial.state.is_finished() and "seconds" in trial.user_attrs


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."


class _AlreadyLocked(JournalFileOpenLock):
    """No lock of Optuna's own: it would outlive a process that is killed, and ours keeps others out."""

    def acquire(self) -> bool:
        return True

    def release(self) -> None:
        pass


class _Journal(JournalFileBackend):
    """The file; a full disk is the user's to mend."""

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
    """Raise InputError where the file is something else; take away a last line that was cut."""
    content = path.read_bytes()
    if not content:
        return
    first, _, _ = content.partition(b"\n")
    try:
        is_study = json.loads(first)["study_name"] == NAME
    except (ValueError, KeyError, TypeError):
        is_study = False
    if not is_study:
        raise InputError(f'{path} is no study of "snuh tune": choose another file with --study')
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
    except Exception as error:  # Optuna meets damaged journals with exceptions of many kinds
        raise InputError(
            f"{path} is damaged ({type(error).__name__}): choose another file with --study"
        ) from error
