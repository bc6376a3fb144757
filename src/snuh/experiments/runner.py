"""The targets by name, and executing one run: fit, evaluate the codes, and return the row of results.

A row also tells the environment of the run: machine, package versions, commit and memory.
"""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import snuh
from snuh import __version__
from snuh.encoder import Encoder
from snuh.errors import InputError, SnuhError, suggest
from snuh.experiments.case_study import CASE_STUDY, examples
from snuh.experiments.corpora import Corpus, locate, open_texts
from snuh.experiments.efficiency import EFFICIENCY
from snuh.experiments.maps import MAP, map_points
from snuh.experiments.precision_tables import APPENDIX, TABLE1, TABLE2
from snuh.experiments.run import Artifact, Row, Run, check_completed
from snuh.experiments.score_study import SCORE_STUDY
from snuh.experiments.scores import LabelScore
from snuh.experiments.sweeps import SWEEPS
from snuh.experiments.target import Target
from snuh.methods import make
from snuh.metrics import evaluate_codes
from snuh.progress import OnProgress, Progress

FORMAT = 1
OUTCOME_FIELDS = (  # null in the row of a failed run
    "precision",
    "precision_within_2",
    "random_precision",
    "alive",
    "distinct_codes",
    "ones_fraction",
    "bit_correlation",
    "candidate_scores",
    "score",
    "epochs",
    "best_epoch",
    "stopped",
    "epoch_seconds",
    "artifact_data",
)
ARTIFACTS: Mapping[Artifact, Callable[[Run, Encoder, Corpus], dict[str, Any]]] = {
    "examples": examples,
    "map": map_points,
}


class StageTimer:
    """A progress callback that adds up the time per stage: the time since the last report is the stage's."""

    def __init__(self, on_progress: OnProgress | None) -> None:
        self.seconds: dict[str, float] = {}
        self._on_progress = on_progress
        self._last = time.perf_counter()

    def __call__(self, progress: Progress) -> None:
        """Add the time and forward the report."""
        now = time.perf_counter()
        self.seconds[progress.stage] = self.seconds.get(progress.stage, 0.0) + now - self._last
        self._last = now
        if self._on_progress is not None:
            self._on_progress(progress)


def check_runs(runs: Sequence[Run]) -> None:
    """Raise, before slow work starts, if a corpus, a parameter or an extra is missing."""
    for corpus, features in {run.corpus: run.features for run in runs}.items():
        locate(corpus, features)
    for corpus in {run.corpus for run in runs if run.artifact == "examples"}:
        open_texts(corpus)
    for run in runs:
        _estimator(run).check_parameters()


def execute_run(
    run: Run, corpus: Corpus, *, commit: str | None, on_progress: OnProgress | None = None
) -> Row:
    """Execute a run and return its row; a run that fails returns a row with its error.

    Ctrl-C raises KeyboardInterrupt: the codes of an interrupted training are not a result.
    """
    corpus = corpus.first(run.documents)
    estimator = _estimator(run)
    error = None
    timer = StageTimer(on_progress)
    reset_peak_memory()
    started = time.perf_counter()
    try:
        try:
            _fit(estimator, run, corpus, timer)
        finally:
            seconds, peak = time.perf_counter() - started, peak_megabytes()
        outcome = _outcome(estimator, run, corpus)
    except SnuhError as failure:
        error, outcome = " ".join(str(failure).split()), dict.fromkeys(OUTCOME_FIELDS)
    docs = len(corpus.splits["train"].ids)
    return {
        "format": FORMAT,
        **asdict(run),
        "corpus_sha256": corpus.sha256,
        "train_documents": docs,
        "all_parameters": estimator.get_params(),
        "derived_parameters": estimator.derived_parameters(docs),
        "all_features": corpus.all_features,
        **outcome,
        "seconds": round(seconds, 3),
        "stage_seconds": {stage: round(spent, 3) for stage, spent in timer.seconds.items()},
        "peak_megabytes": peak,
        "error": error,
        "snuh": __version__,
        "commit": commit,
        "versions": versions(),
        "machine": machine_info(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _estimator(run: Run) -> Any:  # a HashingEstimator; its class is known only when it is imported
    return make(run.method, bits=run.bits, seed=run.seed, parameters=run.parameters)


def _fit(estimator: Any, run: Run, corpus: Corpus, on_progress: OnProgress | None) -> None:
    train, val = corpus.splits["train"], corpus.splits["val"]
    score = LabelScore(train, val) if run.select == "labels" else None
    estimator.fit(train.X, X_val=val.X, score=score, on_progress=on_progress)
    check_completed(estimator.training_["stopped"])


def _outcome(estimator: Any, run: Run, corpus: Corpus) -> dict[str, Any]:
    train, test = corpus.splits["train"], corpus.splits["test"]
    codes = estimator.transform(train.X)
    scores = evaluate_codes(estimator.transform(test.X), test.labels, codes, train.labels, radius=2)
    ones, correlation = scores.health.ones_fraction, scores.health.bit_correlation
    training = estimator.training_
    epochs = [report.seconds for report in estimator.history_]
    # Runs on a part of the corpus measure time and memory only.
    candidates = corpus.candidates(estimator.encoder_) if run.documents is None else {}
    make_artifact = ARTIFACTS.get(run.artifact)
    return {
        "precision": {str(cutoff): round(value, 5) for cutoff, value in scores.precision.items()},
        "precision_within_2": round(scores.precision_within_radius, 5),
        "random_precision": round(scores.random_precision, 5),
        "alive": scores.health.alive,
        "distinct_codes": scores.health.distinct_codes,
        "ones_fraction": [round(min(ones), 3), round(max(ones), 3)],
        "bit_correlation": None if correlation is None else round(correlation, 4),
        "candidate_scores": {name: round(value, 5) for name, value in candidates.items()},
        **{name: training[name] for name in ("score", "epochs", "best_epoch", "stopped")},
        "epoch_seconds": round(statistics.median(epochs), 4) if epochs else None,
        "artifact_data": None if make_artifact is None else make_artifact(run, estimator.encoder_, corpus),
    }


# Targets

TARGETS = {
    target.name: target
    for target in (TABLE1, TABLE2, *SWEEPS, EFFICIENCY, CASE_STUDY, MAP, APPENDIX, SCORE_STUDY)
}


def find_target(name: str) -> Target:
    """Return a target; InputError suggests the nearest name if there is none."""
    if name not in TARGETS:
        known = ", ".join(TARGETS)
        raise InputError(f'unknown target "{name}"{suggest(name, TARGETS)}: known targets are {known}')
    return TARGETS[name]


# The environment

RESULTS_FOLDER = "results"  # of the checkout; changes there do not make it dirty
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "torch")


def machine_info() -> dict[str, Any]:
    """Return processor, SIMD extensions used by NumPy, cores, threads used, load and system."""
    import numba

    return {
        "cpu": _processor(),
        "simd": _simd_extensions(),  # they change the order of floating-point sums, so the last digits
        "cores": os.cpu_count(),
        "threads": numba.get_num_threads(),
        "load": round(os.getloadavg()[0], 2),  # timings are reliable only if it is well below the cores
        "system": platform.platform(),
    }


def versions(extra: Sequence[str] = ()) -> dict[str, str]:
    """Return the versions of Python, of the packages that results depend on, and of `extra` if installed."""
    installed = {"python": platform.python_version()}
    for package in (*PACKAGES, *extra):
        try:
            installed[package] = version(package)
        except PackageNotFoundError:
            continue
    return installed


def commit() -> str | None:
    """Return the commit of the checkout that the package runs from, with "-dirty" if files were changed.

    Changes in the results folder do not count: measurements are added there.
    """
    root = Path(snuh.__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    try:
        head = _git("rev-parse", "HEAD", cwd=root)
        changes = _git("diff", "--quiet", "HEAD", "--", ".", f":(exclude){RESULTS_FOLDER}", cwd=root)
    except FileNotFoundError:  # git is not installed
        return None
    if head.returncode:  # for example before the first commit
        return None
    return head.stdout.strip() + ("-dirty" if changes.returncode else "")


def _git(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *arguments], cwd=cwd, capture_output=True, text=True)


def reset_peak_memory() -> None:
    """Restart `peak_megabytes` from the current memory, where the system supports it (Linux)."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def peak_megabytes() -> int:
    """Return the peak memory of this process, since it started or since `reset_peak_memory`."""
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    unit = 1 if sys.platform == "darwin" else 1024  # bytes on macOS, kibibytes elsewhere
    return round(peak * unit / 1e6)


def _simd_extensions() -> list[str]:
    import numpy as np

    config: Any = np.show_config(mode="dicts")  # typed as if it only printed
    extensions = config.get("SIMD Extensions", {})  # empty lists are left out
    return [*extensions.get("baseline", []), *extensions.get("found", [])]


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
