"""Which score without labels tracks their precision? Runs of many methods and settings, good and bad.

For each corpus and score: its rank correlation with precision@100 over the runs, and the precision that is
lost by taking the run with the best score instead of the one with the best precision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from snuh.experiments.candidates import CANDIDATES
from snuh.experiments.cells import Printed, Table, bold, number
from snuh.experiments.figures import Figures
from snuh.experiments.run import Row
from snuh.experiments.target import Choice, Target, Variant
from snuh.methods import METHODS

# Settings away from the defaults, most of them for the worse; some are also runs of table2 and the sweeps.
SETTINGS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "snuh": ({"correlation": "none"}, {"tau": 1.0}, {"epochs": 3}),
    "snuh-plus": ({"epochs": 2},),
    "vdsh": ({"epochs": 2},),
    "nash": ({"epochs": 2},),
}

USUAL = Choice(corpora=("ng20", "reuters", "tmc", "agnews"), methods=tuple(METHODS), bits=(64,), seeds=(0,))
QUICK = replace(USUAL, corpora=("reuters",), methods=("lsh", "itq", "sph", "sth", "nash"))


@dataclass(frozen=True)
class Verdict:
    """How a score did on a corpus."""

    runs: int
    correlation: float  # Spearman's, over the runs
    lost: float  # precision@100


def variants(choice: Choice) -> list[Variant]:
    """Return each method as it is, and with each of its settings."""
    found = []
    for method in choice.methods:
        found.append(Variant(method, method))
        for settings in SETTINGS.get(method, ()):
            choice.check_not_given(list(settings), target="score")
            label = ", ".join(f"{name}={value}" for name, value in settings.items())
            found.append(Variant(f"{method} {label}", method, settings))
    return found


def is_scored(row: Row) -> bool:
    """Whether a run has every score, and so can be judged by: lines from before one was known have not."""
    return set(CANDIDATES) <= (row.get("candidates") or {}).keys()


def verdict(rows: Sequence[Row], candidate: str) -> Verdict | None:
    """Judge a score by runs on one corpus; None where they are too few."""
    from scipy.stats import spearmanr

    pairs = [(row["candidates"][candidate], row["precision"]["100"]) for row in rows if is_scored(row)]
    if len(pairs) < 3:
        return None
    scores, precisions = zip(*pairs, strict=True)
    chosen = max(pairs)[1]  # by its score
    return Verdict(len(pairs), float(spearmanr(scores, precisions).statistic), max(precisions) - chosen)


def table(choice: Choice, variants: Sequence[Variant], rows: Sequence[Row]) -> Printed:
    """Return a line for each score, two columns for each corpus and length."""
    figures = Figures(choice, rows)
    columns = [["score", *CANDIDATES]]
    for corpus in choice.corpora:
        for bits in choice.bits:
            found = [row for variant in variants for row in figures.rows(corpus, bits, variant)]
            verdicts = [verdict(found, candidate) for candidate in CANDIDATES]
            columns += _columns(f"{corpus}, {bits} bits", verdicts)
    return Printed(__doc__.strip() if __doc__ else "", [Table.of_columns(columns)])


def _columns(title: str, verdicts: Sequence[Verdict | None]) -> list[list[str]]:
    known = [verdict for verdict in verdicts if verdict is not None]
    most = max((verdict.correlation for verdict in known), default=None)
    least = min((verdict.lost for verdict in known), default=None)
    runs = f" ({known[0].runs} runs)" if known else ""
    correlations, losses = [f"{title}{runs}: correlation"], ["lost"]
    for verdict in verdicts:
        if verdict is None:
            correlations.append("")
            losses.append("")
            continue
        shown = number(verdict.correlation, digits=2)
        correlations.append(bold(shown, when=verdict.correlation == most))
        losses.append(bold(number(verdict.lost, digits=3), when=verdict.lost == least))
    return [correlations, losses]


SCORE_STUDY = Target("score", USUAL, QUICK, variants, table)
