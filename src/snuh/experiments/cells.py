"""The cells of a table, and Markdown that can be read as it is."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Cell:
    """The values of one cell, one a seed, and how many runs failed."""

    values: Sequence[float]
    failed: int = 0

    @property
    def mean(self) -> float | None:
        """The mean over the seeds; None where there is no value."""
        return statistics.mean(self.values) if self.values else None

    @property
    def deviation(self) -> float | None:
        """The standard deviation over the seeds; None where there are fewer than two."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None

    @property
    def shown(self) -> str:
        """The mean as text, empty where there is no value."""
        return number(self.mean, digits=3)

    @property
    def rest(self) -> str:
        """What follows the mean: the spread, the number of seeds, and how many failed."""
        if not self.values:
            return f"{self.failed} failed" if self.failed else ""
        spread = "" if self.deviation is None else f" ± {number(self.deviation, digits=3)}"
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{spread} ({len(self.values)}{failed})"


def number(value: float | None, *, digits: int) -> str:
    """Write a share without the zero before its point, and nothing as an empty text."""
    if value is None:
        return ""
    text = f"{value:.{digits}f}"
    return text.removeprefix("0") if value < 1 else text


def bold(text: str, *, when: bool) -> str:
    """Return Markdown for a text, in bold or not."""
    return f"**{text}**" if when and text else text


def markdown(columns: Sequence[Sequence[str]]) -> str:
    """Return the Markdown table of columns, each with its title first, that also reads well as it is."""
    widths = [max(map(len, column)) for column in columns]
    padded = ([cell.ljust(width) for cell in column] for column, width in zip(columns, widths, strict=True))
    header, *lines = (f"| {' | '.join(cells)} |" for cells in zip(*padded, strict=True))
    rule = f"|{'|'.join('-' * (width + 2) for width in widths)}|"
    return "\n".join([header, rule, *lines])
