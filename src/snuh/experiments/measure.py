"""Doing one run: learn codes, let the test documents search the training documents, keep the facts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from snuh import __version__
from snuh.errors import SnuhError
from snuh.experiments.corpora import Corpus, locate
from snuh.experiments.labels import LabelScore
from snuh.experiments.machine import machine_facts, peak_megabytes, versions
from snuh.experiments.run import Row, Run
from snuh.methods import make
from snuh.metrics import evaluate_codes
from snuh.progress import OnProgress

FORMAT = 1
LEARNT = ("precision", "alive", "distinct_codes", "ones_share", "score", "epochs", "best_epoch", "stopped")


def check_runs(runs: Sequence[Run]) -> None:
    """Raise, before slow work starts, where a corpus, a parameter or an extra is missing."""
    for corpus, features in {run.corpus: run.features for run in runs}.items():
        locate(corpus, features)
    for run in runs:
        _estimator(run).check_parameters()


def measure(run: Run, corpus: Corpus, *, commit: str | None, on_progress: OnProgress | None = None) -> Row:
    """Do a run and return its row; a fit that fails leaves a row with its error.

    Ctrl-C raises KeyboardInterrupt: codes of a training that was cut short are no result.
    """
    estimator = _estimator(run)
    error = None
    started = time.perf_counter()
    try:
        _fit(estimator, run, corpus, on_progress)
    except SnuhError as failure:
        error = " ".join(str(failure).split())
    seconds = time.perf_counter() - started
    learnt = _learnt(estimator, corpus) if error is None else dict.fromkeys(LEARNT)
    return {
        "format": FORMAT,
        **asdict(run),
        "corpus_sha256": corpus.sha256,
        "all_parameters": estimator.get_params(),
        "all_features": corpus.all_features,
        **learnt,
        "seconds": round(seconds, 3),
        "peak_megabytes": peak_megabytes(),
        "error": error,
        "snuh": __version__,
        "commit": commit,
        "versions": versions(),
        "machine": machine_facts(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _estimator(run: Run) -> Any:  # a HashingEstimator; its class is known only when it is imported
    return make(run.method, bits=run.bits, seed=run.seed, parameters=run.parameters)


def _fit(estimator: Any, run: Run, corpus: Corpus, on_progress: OnProgress | None) -> None:
    train, val = corpus.splits["train"], corpus.splits["val"]
    score = LabelScore(train, val) if run.select == "labels" else None
    estimator.fit(train.X, X_val=val.X, score=score, on_progress=on_progress)
    if estimator.training_["stopped"] == "interrupted":
        raise KeyboardInterrupt


def _learnt(estimator: Any, corpus: Corpus) -> dict[str, Any]:
    train, test = corpus.splits["train"], corpus.splits["test"]
    scores = evaluate_codes(
        estimator.transform(test.X), test.labels, estimator.transform(train.X), train.labels
    )
    ones = scores.health.ones_share
    training = estimator.training_
    return {
        "precision": {str(cutoff): round(value, 5) for cutoff, value in scores.precision.items()},
        "alive": scores.health.alive,
        "distinct_codes": scores.health.distinct_codes,
        "ones_share": [round(min(ones), 3), round(max(ones), 3)],
        **{name: training[name] for name in ("score", "epochs", "best_epoch", "stopped")},
    }
