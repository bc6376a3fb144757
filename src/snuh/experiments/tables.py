"""Tables of results, and their Markdown, aligned so that it is readable as plain text."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace


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
