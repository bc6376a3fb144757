"""Doing one run: learn codes, let the test documents search the training documents, keep the facts."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from snuh import __version__
from snuh.errors import SnuhError
from snuh.experiments.corpora import Corpus, locate, open_texts
from snuh.experiments.labels import LabelScore
from snuh.experiments.machine import forget_peak, machine_facts, peak_megabytes, versions
from snuh.experiments.observations import observe
from snuh.experiments.run import Row, Run
from snuh.experiments.stages import StageClock
from snuh.methods import make
from snuh.methods.result import check_completed
from snuh.metrics import evaluate_codes
from snuh.progress import OnProgress

FORMAT = 1
LEARNT = (
    "precision",
    "precision_within_2",
    "chance",
    "alive",
    "distinct_codes",
    "ones_share",
    "bit_correlation",
    "candidates",
    "score",
    "epochs",
    "best_epoch",
    "stopped",
    "epoch_seconds",
    "observed",
)


def check_runs(runs: Sequence[Run]) -> None:
    """Raise, before slow work starts, where a corpus, a parameter or an extra is missing."""
    for corpus, features in {run.corpus: run.features for run in runs}.items():
        locate(corpus, features)
    for corpus in {run.corpus for run in runs if run.observe == "examples"}:
        open_texts(corpus)
    for run in runs:
        _estimator(run).check_parameters()


def measure(run: Run, corpus: Corpus, *, commit: str | None, on_progress: OnProgress | None = None) -> Row:
    """Do a run and return its row; one that fails leaves a row with its error.

    Ctrl-C raises KeyboardInterrupt: codes of a training that was cut short are no result.
    """
    corpus = corpus.first(run.documents)
    estimator = _estimator(run)
    error = None
    clock = StageClock(on_progress)
    forget_peak()
    started = time.perf_counter()
    try:
        try:
            _fit(estimator, run, corpus, clock)
        finally:
            seconds, peak = time.perf_counter() - started, peak_megabytes()
        learnt = _learnt(estimator, run, corpus)
    except SnuhError as failure:
        error, learnt = " ".join(str(failure).split()), dict.fromkeys(LEARNT)
    docs = len(corpus.splits["train"].ids)
    return {
        "format": FORMAT,
        **asdict(run),
        "corpus_sha256": corpus.sha256,
        "train_documents": docs,
        "all_parameters": estimator.get_params(),
        "derived_parameters": estimator.derived_parameters(docs),
        "all_features": corpus.all_features,
        **learnt,
        "seconds": round(seconds, 3),
        "stage_seconds": {stage: round(spent, 3) for stage, spent in clock.seconds.items()},
        "peak_megabytes": peak,
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
    check_completed(estimator.training_["stopped"])


def _learnt(estimator: Any, run: Run, corpus: Corpus) -> dict[str, Any]:
    train, test = corpus.splits["train"], corpus.splits["test"]
    codes = estimator.transform(train.X)
    scores = evaluate_codes(estimator.transform(test.X), test.labels, codes, train.labels, radius=2)
    ones, correlation = scores.health.ones_share, scores.health.bit_correlation
    training = estimator.training_
    epochs = [report.seconds for report in estimator.history_]
    # Runs on a part are about time and memory.
    candidates = corpus.candidates(estimator.encoder_) if run.documents is None else {}
    return {
        "precision": {str(cutoff): round(value, 5) for cutoff, value in scores.precision.items()},
        "precision_within_2": round(scores.precision_within_radius, 5),
        "chance": round(scores.chance, 5),
        "alive": scores.health.alive,
        "distinct_codes": scores.health.distinct_codes,
        "ones_share": [round(min(ones), 3), round(max(ones), 3)],
        "bit_correlation": None if correlation is None else round(correlation, 4),
        "candidates": {name: round(value, 5) for name, value in candidates.items()},
        **{name: training[name] for name in ("score", "epochs", "best_epoch", "stopped")},
        "epoch_seconds": round(statistics.median(epochs), 4) if epochs else None,
        "observed": observe(run, estimator.encoder_, corpus),
    }
