"""Precision by validation labels of settings of a method, and of every epoch of their training.

Trains on the split train and searches it with the split val, or with 1,000 documents held out of train where
there is no val; test is not read. Labels only evaluate: the epoch is selected without them. With `--scores`,
the candidates of `snuh reproduce score` are computed for some epochs of every run, and their rank correlation
with precision over settings and epochs is added. Prints JSON.

    SNUH_DATA=... python -m benchmarks.settings stackoverflow reuters --bits 16 64 --set '{}' \\
        --set '{"neighbor_words": 1, "neighbors": 20}' [--method snuh-plus] [--terms 10000] [--scores]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from benchmarks.machine import facts
from benchmarks.vocabulary import split
from snuh.corpus import MatrixSplit, open_source
from snuh.encoder import Encoder
from snuh.experiments.scores import CandidateScores, LabelScore
from snuh.features import TfidfFeatures
from snuh.methods import DEFAULT, make
from snuh.training.validation_score import Score

SCORED_EPOCHS = 6  # of each run


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpora", nargs="+")
    parser.add_argument("--bits", type=int, nargs="+", default=[64])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--method", default=DEFAULT)
    parser.add_argument("--set", type=json.loads, action="append", dest="settings", metavar="JSON")
    parser.add_argument("--terms", type=int, default=30_000)
    parser.add_argument("--scores", action="store_true")
    options = parser.parse_args()
    runs, correlations = [], []
    for name in options.corpora:
        corpus = Corpus(name, terms=options.terms)
        for bits in options.bits:
            scored: list[dict[str, Any]] = []
            for parameters in options.settings or [{}]:
                for seed in options.seeds:
                    run, encoders = corpus.fit(options.method, bits=bits, seed=seed, parameters=parameters)
                    runs.append({"corpus": name, "bits": bits, "parameters": parameters, "seed": seed, **run})
                    print(runs[-1], file=sys.stderr, flush=True)
                    if options.scores:
                        scored += corpus.score(encoders)
            if scored:
                correlations.append({"corpus": name, "bits": bits, **correlate(scored)})
    result = {"method": options.method, "terms": options.terms, "runs": runs, "correlations": correlations}
    json.dump({**result, "machine": facts()}, sys.stdout, indent=2)
    print()


class Corpus:
    """Rows and labels of the training documents and of the held-out queries."""

    def __init__(self, name: str, *, terms: int) -> None:
        train, queries, _ = split(list(open_source(name).documents()))
        features = TfidfFeatures(max_terms=terms).fit(doc.text for doc in train)
        self.train, self.queries = (
            MatrixSplit(
                features.transform(doc.text for doc in docs),
                [doc.id for doc in docs],
                [doc.labels for doc in docs],
            )
            for docs in (train, queries)
        )
        self._precision = LabelScore(self.train, self.queries)
        self._candidates: CandidateScores | None = None

    def fit(
        self, method: str, *, bits: int, seed: int, parameters: dict[str, Any]
    ) -> tuple[dict[str, Any], list[tuple[float, Encoder]]]:
        """Return the facts of a fit, and the encoder of each epoch with its precision by labels."""
        estimator = make(method, bits=bits, seed=seed, parameters=parameters)
        data = estimator.training_data(self._precision.database, self._precision.queries)
        encoders: list[tuple[float, Encoder]] = []

        def score(encoder: Encoder) -> Score:
            encoders.append((self._precision(encoder).value, encoder))
            selected: Score = data.score(encoder)
            return selected

        started = time.perf_counter()
        estimator.fit(self.train.X, X_val=self.queries.X, score=score)
        seconds = time.perf_counter() - started
        precision = self._precision(estimator.encoder_).value
        by_epoch = [round(value, 4) for value, _ in encoders]
        run = {
            "precision": round(precision, 4),
            "best_epoch": estimator.training_["best_epoch"],
            "by_epoch": by_epoch,
            "epoch_seconds": round(sum(report.seconds for report in estimator.history_), 1),
            "seconds": round(seconds, 1),
        }
        return run, encoders or [(precision, estimator.encoder_)]

    def score(self, encoders: list[tuple[float, Encoder]]) -> list[dict[str, Any]]:
        """Return the candidates of some epochs, spread over the run, with their precision."""
        if self._candidates is None:
            self._candidates = CandidateScores(self.train.X, self.queries.X)
        indices = np.linspace(0, len(encoders) - 1, min(len(encoders), SCORED_EPOCHS)).round().astype(int)
        chosen = [encoders[index] for index in indices]
        return [{"precision": value, **self._candidates(encoder)} for value, encoder in chosen]


def correlate(scored: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the rank correlation of each candidate with precision, and what choosing by it loses."""
    precision = [run["precision"] for run in scored]
    table: dict[str, Any] = {"encoders": len(scored), "correlation": {}, "lost": {}}
    for name in scored[0].keys() - {"precision"}:
        values = [run[name] for run in scored]
        table["correlation"][name] = round(float(spearmanr(values, precision).statistic), 3)
        table["lost"][name] = round(max(precision) - precision[int(np.argmax(values))], 4)
    return table


if __name__ == "__main__":
    main()
