"""Doing trials in the terminal: one after the other, with the best so far and the time that is left."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import typer

from snuh.cli.output import display, duration
from snuh.cli.training import CtrlC, holding_ctrl_c
from snuh.errors import SnuhError
from snuh.progress import Progress
from snuh.tuning.study import Done, GivenUpError, Study, Trial
from snuh.tuning.task import Task


def do_trials(task: Task, study: Study, *, trials: int, minutes: float | None) -> bool:
    """Do trials until the study has so many, or no new one may begin; return whether Ctrl-C ended it."""
    end = None if minutes is None else time.monotonic() + 60 * minutes
    with holding_ctrl_c() as ctrl_c:
        ctrl_c.has_epoch = True  # the file must never be left in the middle of a line
        while len(study.trials()) < trials and (end is None or time.monotonic() < end):
            trial = study.next()
            if trial is None:
                return False
            try:
                _do(task, study, trial, trials=trials, ctrl_c=ctrl_c)
            except KeyboardInterrupt:
                trial.drop()
                return True
            _tell(study, trials)
            if ctrl_c.asked:
                return True
    return False


def _do(task: Task, study: Study, trial: Trial, *, trials: int, ctrl_c: CtrlC) -> None:
    best = study.best()
    so_far = "" if best is None else f", best {best.score:.4f}"
    label = f"Trial {len(study.trials()) + 1} of {trials}{so_far}"
    started = time.perf_counter()
    with display() as shown:
        shown.show(label, 0.0)

        def report(progress: Progress) -> None:
            # Never quite done: the line that follows says how the trial ended.
            shown.show(label, min(progress.done, 0.999) if progress.stage == "training" else 0.0)
            if progress.epoch is not None:
                trial.report(progress.done, progress.epoch.score)

        try:
            score = task.measure(trial.parameters, on_progress=ctrl_c.watch(report))
        except GivenUpError:
            trial.finish("given up", seconds=time.perf_counter() - started)
        except SnuhError as error:
            reason = " ".join(str(error).split())
            trial.finish("failed", seconds=time.perf_counter() - started, error=reason)
        else:
            trial.finish("done", seconds=time.perf_counter() - started, score=score)


def _tell(study: Study, trials: int) -> None:
    """Write a line on the latest trial and what is still to do."""
    done, best = study.trials(), study.best()
    to_do = max(0, trials - len(done))
    left = f", about {duration(to_do * sum(trial.seconds for trial in done) / len(done))}" if to_do else ""
    so_far = "" if best is None else f"; best {best.score:.4f}"
    number = f"trial {len(done)}"
    typer.echo(f"{number}: {_outcome(done[-1], study.defaults())}{so_far}; {to_do} to do{left}", err=True)


def _outcome(trial: Done, defaults: Done | None) -> str:
    if trial.end == "failed":
        result = f"failed: {trial.error}"
    elif trial.end == "given up":
        result = "given up"
    else:
        result = f"score {trial.score:.4f}"
    is_first = defaults is not None and trial.number == defaults.number
    chosen = "the defaults" if is_first else assignments(trial.parameters)
    return f"{result} in {duration(trial.seconds)} with {chosen}"


def assignments(parameters: Mapping[str, Any]) -> str:
    """Return parameters as they are given to --set."""
    return " ".join(f"{name}={value}" for name, value in parameters.items())
