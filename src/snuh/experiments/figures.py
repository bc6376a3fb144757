"""The figures of a table, from the rows that a file holds, and what is said above them."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from snuh.experiments.cells import Cell, bold
from snuh.experiments.run import Row, Select, run_key
from snuh.experiments.target import Choice, Variant

PROTOCOLS: Mapping[Select, str] = {
    "label-free": "A fit sees no labels: the epoch is chosen by the held-out score (--select label-free).",
    "labels": "The paper's protocol: the epoch is chosen by the labels of the validation split "
    "(--select labels).",
}


class Figures:
    """Finds the figures of a choice: its protocol, its settings, its seeds, and no others."""

    def __init__(self, choice: Choice, rows: Sequence[Row]) -> None:
        self._choice = choice
        self._found = {run_key(row): row for row in rows}  # of several rows of a run the last counts

    def compared(self, corpus: str, bits: int, variants: Sequence[Variant]) -> list[str]:
        """Return a cell for each variant, in bold the best over the seeds that all of them have."""
        cells = [self.cell(corpus, bits, variant) for variant in variants]
        by_seed = [self.precision(corpus, bits, variant) for variant in variants]
        known = [set(found) for found in by_seed if found]
        common = set.intersection(*known) if known else set()
        means = [_mean_over(common, found) for found in by_seed]
        best = max((mean for mean in means if mean is not None), default=None)
        return [
            bold(cell.shown, when=mean is not None and mean == best) + cell.rest
            for cell, mean in zip(cells, means, strict=True)
        ]

    def rows(self, corpus: str, bits: int, variant: Variant) -> list[Row]:
        """Return the rows of the seeds, without runs that failed."""
        return [row for row in self._all_rows(corpus, bits, variant) if row["error"] is None]

    def precision(self, corpus: str, bits: int, variant: Variant) -> dict[int, float]:
        """Return precision@100 by seed."""
        return {row["seed"]: row["precision"]["100"] for row in self.rows(corpus, bits, variant)}

    def cell(self, corpus: str, bits: int, variant: Variant) -> Cell:
        """Return precision@100 of the seeds as a cell."""
        values = list(self.precision(corpus, bits, variant).values())
        return Cell(values, failed=len(self._all_rows(corpus, bits, variant)) - len(values))

    def _all_rows(self, corpus: str, bits: int, variant: Variant) -> list[Row]:
        keys = [self._choice.run(corpus, variant, bits, seed).key for seed in self._choice.seeds]
        return [self._found[key] for key in keys if key in self._found]


def _mean_over(seeds: set[int], found: Mapping[int, float]) -> float | None:
    return statistics.mean(found[seed] for seed in seeds) if seeds and found else None


def heading(choice: Choice, *also: str) -> str:
    """Return what the figures are, line by line: the measure, the protocol, the settings that were given."""
    given = {**choice.parameters, **{f"features.{name}": value for name, value in choice.features.items()}}
    settings = ", ".join(f"{name}={value}" for name, value in given.items())
    lines = [
        "precision@100 on the test split: mean ± standard deviation (number of seeds).",
        "Bold: the best of a column, by the seeds that all of its rows have.",
        PROTOCOLS[choice.select],
        f"With {settings}." if settings else "",
        *also,
    ]
    return "\n".join(line for line in lines if line)
