"""The paper's picture of codes: test documents in the plane, SNUH beside AMMI. The report draws it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from snuh.experiments.cells import Printed, Table, number
from snuh.experiments.figures import Figures
from snuh.experiments.run import Row
from snuh.experiments.target import Choice, Target, Variant
from snuh.methods.selection import top_k_probability

USUAL = Choice(corpora=("ng20",), methods=("snuh", "ammi"), bits=(64,), seeds=(0,))
QUICK = replace(USUAL, methods=("snuh",))
NEAREST = 10

ABOUT = f"""t-SNE of the values that the bits are cut from, of test documents; "snuh report" draws it.
In the table: of the {NEAREST} nearest points of a point, the share with its label."""


def variants(choice: Choice) -> list[Variant]:
    """Return each method, with a map to make."""
    return [Variant(method, method, observe="map") for method in choice.methods]


def table(choice: Choice, variants: Sequence[Variant], rows: Sequence[Row]) -> Printed:
    """Return how well each map keeps labels together."""
    figures = Figures(choice, rows)
    titles, lines = ("corpus", "bits", "method", "seed", "points", "same label"), []
    for corpus in choice.corpora:
        for bits in choice.bits:
            for variant in variants:
                for row in figures.rows(corpus, bits, variant):
                    points = row["observed"]["points"]
                    share = number(same_label(points), digits=3)
                    facts = (corpus, str(bits), variant.label, str(row["seed"]), f"{len(points):,}", share)
                    lines.append(facts)
    return Printed(ABOUT, [Table(titles, lines)])


def same_label(points: Sequence[Sequence[int]]) -> float:
    """Return the share of equal labels among the nearest points; a point is (x, y, number of its label)."""
    table = np.asarray(points)
    places, labels = table[:, :2], table[:, 2]
    nearest = min(NEAREST, len(table) - 1)
    distances = ((places[:, None] - places[None]) ** 2).sum(2)
    np.fill_diagonal(distances, np.iinfo(distances.dtype).max)
    share = top_k_probability(distances, nearest)  # points have integer coordinates: many are tied
    return float(share[labels == labels[:, None]].sum(dtype=np.float64) / (nearest * len(table)))


MAP = Target("map", USUAL, QUICK, variants, table)
