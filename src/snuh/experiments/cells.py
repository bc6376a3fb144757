"""Tables and their cells, and Markdown of them that can be read as it is."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace


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


@dataclass(frozen=True)
class Table:
    """A table of texts; in a cell, Markdown's signs of bold are the only ones with a meaning."""

    titles: Sequence[str]
    lines: Sequence[Sequence[str]]
    caption: str = ""

    @classmethod
    def of_columns(cls, columns: Sequence[Sequence[str]]) -> Table:
        """Return the table of columns, each with its title first."""
        titles, *lines = zip(*columns, strict=True)
        return cls(titles, lines)

    def without(self, title: str) -> Table:
        """Return the table without a column."""
        place = list(self.titles).index(title)
        titles, *lines = ([*cells[:place], *cells[place + 1 :]] for cells in (self.titles, *self.lines))
        return replace(self, titles=titles, lines=lines)

    def markdown(self) -> str:
        """Return Markdown, the columns as wide as their widest cell."""
        rows = [[_whole(cell) for cell in cells] for cells in (self.titles, *self.lines)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        header, *lines = (
            f"| {' | '.join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))} |"
            for cells in rows
        )
        rule = f"|{'|'.join('-' * (width + 2) for width in widths)}|"
        caption = f"{self.caption}:\n\n" if self.caption else ""
        return caption + "\n".join([header, rule, *lines])


@dataclass(frozen=True)
class Printed:
    """What a target has to show: what the figures are, line by line, and one table or several."""

    about: str
    tables: Sequence[Table]

    def markdown(self) -> str:
        """Return all of it."""
        return "\n\n".join([self.about, *(table.markdown() for table in self.tables)])


def _whole(cell: str) -> str:
    """Keep a text from ending its cell."""
    return cell.replace("\\", "\\\\").replace("|", "\\|")


def number(value: float | None, *, digits: int) -> str:
    """Write a share without the zero before its point, and nothing as an empty text."""
    if value is None:
        return ""
    text = f"{value:.{digits}f}"
    return text.removeprefix("0") if value < 1 else text


def bold(text: str, *, when: bool) -> str:
    """Return Markdown for a text, in bold or not."""
    return f"**{text}**" if when and text else text
