"""Running trials in the terminal, one after the other, with the best so far and the estimated time left."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import typer

from snuh.cli.output import display, duration
from snuh.cli.training import CtrlC, holding_ctrl_c
from snuh.errors import SnuhError
from snuh.progress import Progress
from snuh.tuning.objective import Objective
from snuh.tuning.study import FinishedTrial, Study, Trial, TrialPruned


def run_trials(objective: Objective, study: Study, *, trials: int, minutes: float | None) -> bool:
    """Run trials until the study has n, or no new one may start; return whether Ctrl-C ended it."""
    end = None if minutes is None else time.monotonic() + 60 * minutes
    with holding_ctrl_c() as ctrl_c:
        ctrl_c.has_epoch = True  # Ctrl-C must not interrupt the writing of a line
        while len(study.trials()) < trials and (end is None or time.monotonic() < end):
            trial = study.ask()
            if trial is None:
                return False
            try:
                _run_trial(objective, study, trial, trials=trials, ctrl_c=ctrl_c)
            except KeyboardInterrupt:
                trial.discard()
                return True
            _report_latest(study, trials)
            if ctrl_c.requested:
                return True
    return False


def _run_trial(objective: Objective, study: Study, trial: Trial, *, trials: int, ctrl_c: CtrlC) -> None:
    best = study.best_trial()
    so_far = "" if best is None else f", best {best.score:.4f}"
    label = f"Trial {len(study.trials()) + 1} of {trials}{so_far}"
    started = time.perf_counter()
    with display() as shown:
        shown.show(label, 0.0)

        def report(progress: Progress) -> None:
            # Never 100 %: the line that follows tells how the trial ended.
            shown.show(label, min(progress.done, 0.999) if progress.stage == "training" else 0.0)
            if progress.epoch is not None:
                trial.report(progress.done, progress.epoch.score)

        try:
            score = objective(trial.parameters, on_progress=ctrl_c.watch(report))
        except TrialPruned:
            trial.finish("pruned", seconds=time.perf_counter() - started)
        except SnuhError as error:
            reason = " ".join(str(error).split())
            trial.finish("failed", seconds=time.perf_counter() - started, error=reason)
        else:
            trial.finish("complete", seconds=time.perf_counter() - started, score=score)


def _report_latest(study: Study, trials: int) -> None:
    """Print the outcome of the latest trial and what is left to do."""
    done, best = study.trials(), study.best_trial()
    to_do = max(0, trials - len(done))
    left = f", about {duration(to_do * sum(trial.seconds for trial in done) / len(done))}" if to_do else ""
    so_far = "" if best is None else f"; best {best.score:.4f}"
    number = f"trial {len(done)}"
    typer.echo(
        f"{number}: {_outcome(done[-1], study.default_trial())}{so_far}; {to_do} to do{left}", err=True
    )


def _outcome(trial: FinishedTrial, default_trial: FinishedTrial | None) -> str:
    if trial.state == "failed":
        result = f"failed: {trial.error}"
    elif trial.state == "pruned":
        result = "pruned"
    else:
        result = f"score {trial.score:.4f}"
    is_default = default_trial is not None and trial.number == default_trial.number
    parameters = "the defaults" if is_default else assignments(trial.parameters)
    return f"{result} in {duration(trial.seconds)} with {parameters}"


def assignments(parameters: Mapping[str, Any]) -> str:
    """Format parameters as for --set."""
    return " ".join(f"{name}={value}" for name, value in parameters.items())
