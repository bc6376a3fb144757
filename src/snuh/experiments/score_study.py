"""Which score without labels tracks precision by labels? Runs of many methods, with good and bad settings.

For each corpus and score: its rank correlation with precision@100 over the runs, and the precision lost by
taking the run with the best score instead of the run with the best precision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from snuh.experiments.run import Row
from snuh.experiments.scores import CANDIDATES
from snuh.experiments.target import (
    PAPER_CORPORA,
    Aggregate,
    Choice,
    DescribedTables,
    Table,
    Target,
    Variant,
    bold,
    format_fraction,
)
from snuh.methods import METHODS

# Settings that differ from the defaults, most of them worse; some are also runs of table2 and the sweeps.
SETTINGS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "snuh": ({"correlation": "none"}, {"tau": 1.0}, {"epochs": 3}),
    "snuh-plus": ({"epochs": 2},),
    "vdsh": ({"epochs": 2},),
    "nash": ({"epochs": 2},),
}

DEFAULT = Choice(corpora=(*PAPER_CORPORA, "agnews"), methods=tuple(METHODS), bits=(64,), seeds=(0,))
QUICK = replace(DEFAULT, corpora=("reuters",), methods=("lsh", "itq", "sph", "sth", "nash"))
MIN_RUNS = 3  # for a correlation


@dataclass(frozen=True)
class ScoreQuality:
    """How well a score tracks precision@100 on a corpus."""

    runs: int
    correlation: float  # Spearman's, over the runs
    precision_lost: float


def variants(choice: Choice) -> list[Variant]:
    """Return each method with its defaults, and with each of its SETTINGS."""
    variants = []
    for method in choice.methods:
        variants.append(Variant(method, method))
        for settings in SETTINGS.get(method, ()):
            choice.check_not_set(list(settings), target="score")
            label = ", ".join(f"{name}={value}" for name, value in settings.items())
            variants.append(Variant(f"{method} {label}", method, settings))
    return variants


def is_scored(row: Row) -> bool:
    """Tell whether a row has every candidate; rows written by earlier versions may lack some."""
    return set(CANDIDATES) <= (row.get("candidate_scores") or {}).keys()


def score_quality(rows: Sequence[Row], candidate: str) -> ScoreQuality | None:
    """Rate a score on the runs of one corpus; None with too few runs."""
    from scipy.stats import spearmanr

    pairs = [(row["candidate_scores"][candidate], row["precision"]["100"]) for row in rows if is_scored(row)]
    if len(pairs) < MIN_RUNS:
        return None
    scores, precisions = zip(*pairs, strict=True)
    _, selected = max(pairs)
    return ScoreQuality(
        len(pairs), float(spearmanr(scores, precisions).statistic), max(precisions) - selected
    )


def table(choice: Choice, variants: Sequence[Variant], rows: Sequence[Row]) -> DescribedTables:
    """Return one line per score, two columns per corpus and code length."""
    aggregate = Aggregate(choice, rows)
    columns = [["score", *CANDIDATES]]
    for corpus in choice.corpora:
        for bits in choice.bits:
            runs = [row for variant in variants for row in aggregate.rows(corpus, bits, variant)]
            qualities = [score_quality(runs, candidate) for candidate in CANDIDATES]
            columns += _columns(f"{corpus}, {bits} bits", qualities)
    return DescribedTables(__doc__.strip() if __doc__ else "", [Table.from_columns(columns)])


def _columns(title: str, qualities: Sequence[ScoreQuality | None]) -> list[list[str]]:
    known = [quality for quality in qualities if quality is not None]
    max_correlation = max((quality.correlation for quality in known), default=None)
    min_lost = min((quality.precision_lost for quality in known), default=None)
    runs = f" ({known[0].runs} runs)" if known else ""
    correlations, losses = [f"{title}{runs}: correlation"], ["lost"]
    for quality in qualities:
        if quality is None:
            correlations.append("")
            losses.append("")
            continue
        correlation = format_fraction(quality.correlation, digits=2)
        lost = format_fraction(quality.precision_lost, digits=3)
        correlations.append(bold(correlation, when=quality.correlation == max_correlation))
        losses.append(bold(lost, when=quality.precision_lost == min_lost))
    return [correlations, losses]


SCORE_STUDY = Target("score", DEFAULT, QUICK, variants, table)
