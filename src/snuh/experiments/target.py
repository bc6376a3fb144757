"""A target is a table or figure to reproduce: the runs that it needs, and how their rows become tables."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from snuh.errors import InputError
from snuh.experiments.run import Artifact, Row, Run, Select, latest_rows

PAPER_CORPORA = ("ng20", "reuters", "tmc")
PAPER_BITS = (16, 32, 64, 128)
PAPER_SEEDS = (0, 1, 2)

PROTOCOLS: Mapping[Select, str] = {
    "label-free": "A fit sees no labels: the epoch is selected by the held-out score (--select label-free).",
    "labels": "The paper's protocol: the epoch is selected by the labels of the validation split "
    "(--select labels).",
}


@dataclass(frozen=True)
class Variant:
    """A row of a table: a method, and the parameters that distinguish it from the other rows."""

    label: str
    method: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    artifact: Artifact = "codes"
    documents: int | None = None


@dataclass(frozen=True)
class Choice:
    """The part of a target to reproduce."""

    corpora: tuple[str, ...]
    methods: tuple[str, ...]
    bits: tuple[int, ...]
    seeds: tuple[int, ...]
    values: tuple[float, ...] = ()  # of the parameter that the target varies
    select: Select = "label-free"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    features: Mapping[str, Any] = field(default_factory=dict)

    def run(self, corpus: str, variant: Variant, bits: int, seed: int) -> Run:
        """Return one run of this choice."""
        parameters = {**self.parameters, **variant.parameters}
        return Run(
            corpus,
            variant.method,
            bits,
            seed,
            self.select,
            parameters,
            self.features,
            variant.artifact,
            variant.documents,
        )

    def check_not_set(self, names: Sequence[str], *, target: str) -> None:
        """Raise InputError if a parameter is given that the target sets itself."""
        for name in names:
            if name in self.parameters:
                raise InputError(
                    f"{target} sets {name} itself: remove it from --set or from the settings file"
                )


@dataclass(frozen=True)
class Target:
    """A table or figure of the paper."""

    name: str
    default: Choice
    quick: Choice  # a small part that is still informative
    variants: Callable[[Choice], Sequence[Variant]]  # InputError for a choice that makes no sense
    table: Callable[[Choice, Sequence[Variant], Sequence[Row]], DescribedTables]

    def runs(self, choice: Choice) -> list[Run]:
        """Return all combinations, seed by seed: an interruption leaves complete tables with fewer seeds."""
        combinations = product(choice.seeds, choice.corpora, choice.bits, self.variants(choice))
        return [choice.run(corpus, variant, bits, seed) for seed, corpus, bits, variant in combinations]

    def markdown(self, choice: Choice, rows: Sequence[Row]) -> str:
        """Return the tables of a choice as Markdown, from the rows of a results file."""
        return self.table(choice, self.variants(choice), rows).markdown()


class Aggregate:
    """Aggregates rows over the seeds of a choice; rows of other protocols, settings or seeds are ignored."""

    def __init__(self, choice: Choice, rows: Sequence[Row]) -> None:
        self._choice = choice
        self._rows = latest_rows(rows)

    def rows(self, corpus: str, bits: int, variant: Variant) -> list[Row]:
        """Return the rows of all seeds, without failed runs."""
        return [row for row in self._rows_with_failures(corpus, bits, variant) if row["error"] is None]

    def all_rows(self, variants: Sequence[Variant]) -> list[Row]:
        """Return the rows of all corpora, lengths, variants and seeds, without failed runs."""
        combinations = product(self._choice.corpora, self._choice.bits, variants)
        return [row for combination in combinations for row in self.rows(*combination)]

    def precision(self, corpus: str, bits: int, variant: Variant) -> dict[int, float]:
        """Return precision@100 by seed."""
        return {row["seed"]: row["precision"]["100"] for row in self.rows(corpus, bits, variant)}

    def cell(self, corpus: str, bits: int, variant: Variant) -> Cell:
        """Return precision@100 over the seeds."""
        values = list(self.precision(corpus, bits, variant).values())
        return Cell(values, failed=len(self._rows_with_failures(corpus, bits, variant)) - len(values))

    def column(self, corpus: str, bits: int, variants: Sequence[Variant]) -> list[str]:
        """Return the cells of the variants as Markdown, the best over their common seeds in bold."""
        cells = [self.cell(corpus, bits, variant) for variant in variants]
        by_seed = [self.precision(corpus, bits, variant) for variant in variants]
        seeds = [set(values) for values in by_seed if values]
        common = set.intersection(*seeds) if seeds else set()
        means = [_mean_over(common, values) for values in by_seed]
        best = max((mean for mean in means if mean is not None), default=None)
        return [
            bold(cell.mean_text, when=mean is not None and mean == best) + cell.details
            for cell, mean in zip(cells, means, strict=True)
        ]

    def _rows_with_failures(self, corpus: str, bits: int, variant: Variant) -> list[Row]:
        keys = [self._choice.run(corpus, variant, bits, seed).key for seed in self._choice.seeds]
        return [self._rows[key] for key in keys if key in self._rows]


def describe(choice: Choice, *extra: str) -> str:
    """Return the description above a table: the metric, the protocol and the given settings."""
    given = {**choice.parameters, **{f"features.{name}": value for name, value in choice.features.items()}}
    settings = ", ".join(f"{name}={value}" for name, value in given.items())
    lines = [
        "precision@100 on the test split: mean ± standard deviation (number of seeds).",
        "Bold: the best of a column, over the seeds that all of its rows have.",
        PROTOCOLS[choice.select],
        f"With {settings}." if settings else "",
        *extra,
    ]
    return "\n".join(line for line in lines if line)


def _mean_over(seeds: set[int], values: Mapping[int, float]) -> float | None:
    return statistics.mean(values[seed] for seed in seeds) if seeds and values else None


# Tables of results, and their Markdown, aligned so that it is readable as plain text.


@dataclass(frozen=True)
class Cell:
    """The values of one cell, one per seed, and the number of failed runs."""

    values: Sequence[float]
    failed: int = 0

    @property
    def mean(self) -> float | None:
        """The mean over the seeds; None without values."""
        return statistics.mean(self.values) if self.values else None

    @property
    def std(self) -> float | None:
        """The standard deviation over the seeds; None with fewer than two."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None

    @property
    def mean_text(self) -> str:
        """The mean as text, empty without values."""
        return format_fraction(self.mean, digits=3)

    @property
    def details(self) -> str:
        """What follows the mean: standard deviation, number of seeds, number of failed runs."""
        if not self.values:
            return f"{self.failed} failed" if self.failed else ""
        std = "" if self.std is None else f" ± {format_fraction(self.std, digits=3)}"
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{std} ({len(self.values)}{failed})"

    def __str__(self) -> str:
        return self.mean_text + self.details


@dataclass(frozen=True)
class Table:
    """A table of texts; `**bold**` is the only markup in a cell."""

    titles: Sequence[str]
    lines: Sequence[Sequence[str]]
    caption: str = ""

    @classmethod
    def from_columns(cls, columns: Sequence[Sequence[str]]) -> Table:
        """Return a table from columns that start with their title."""
        titles, *lines = zip(*columns, strict=True)
        return cls(titles, lines)

    def drop_column(self, title: str) -> Table:
        """Return the table without a column."""
        index = list(self.titles).index(title)
        titles, *lines = ([*cells[:index], *cells[index + 1 :]] for cells in (self.titles, *self.lines))
        return replace(self, titles=titles, lines=lines)

    def markdown(self) -> str:
        """Return Markdown with aligned columns."""
        rows = [[_escape(cell) for cell in cells] for cells in (self.titles, *self.lines)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        header, *lines = (
            f"| {' | '.join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))} |"
            for cells in rows
        )
        rule = f"|{'|'.join('-' * (width + 2) for width in widths)}|"
        caption = f"{self.caption}:\n\n" if self.caption else ""
        return caption + "\n".join([header, rule, *lines])


@dataclass(frozen=True)
class DescribedTables:
    """The output of a target: a description, line by line, and one or more tables."""

    description: str
    tables: Sequence[Table]

    def markdown(self) -> str:
        """Return the description and the tables as Markdown."""
        return "\n\n".join([self.description, *(table.markdown() for table in self.tables)])


def _escape(cell: str) -> str:
    """Escape what would end the cell."""
    return cell.replace("\\", "\\\\").replace("|", "\\|")


def format_fraction(value: float | None, *, digits: int) -> str:
    """Format a fraction without the zero before its point; None becomes an empty text."""
    if value is None:
        return ""
    text = f"{value:.{digits}f}"
    return text.removeprefix("0") if value < 1 else text


def bold(text: str, *, when: bool) -> str:
    """Return Markdown for a text, in bold if `when` is true."""
    return f"**{text}**" if when and text else text
