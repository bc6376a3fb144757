"""Tables: those that the targets print as Markdown, read again and set as HTML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from xml.etree.ElementTree import Element

from snuh.report.tags import Child, tag

BETWEEN_CELLS = re.compile(r"(?<!\\)\|")
BOLD = re.compile(r"\*\*(.+?)\*\*")


@dataclass(frozen=True)
class Grid:
    """A table of Markdown cells, and the text that stood above it."""

    about: str
    titles: Sequence[str]
    lines: Sequence[Sequence[str]]

    def without(self, title: str) -> Grid:
        """Return the table without a column."""
        place = list(self.titles).index(title)
        titles, *lines = ([*cells[:place], *cells[place + 1 :]] for cells in (self.titles, *self.lines))
        return replace(self, titles=titles, lines=lines)


def read_grid(markdown: str) -> Grid:
    """Read what a target printed: a text, and one table as `cells.markdown` writes it."""
    about, found = [], []
    for line in markdown.splitlines():
        if line.startswith("|"):
            found.append([cell.strip() for cell in BETWEEN_CELLS.split(line)[1:-1]])
        else:
            about.append(line)
    titles, _, *lines = found
    return Grid("\n".join(about).strip(), titles, lines)


def table(caption: str, titles: Sequence[Child], lines: Sequence[Sequence[Child]], **kind: str) -> Element:
    """Return a table in a box of its own to scroll in; the first cell of a line is its heading."""
    header = tag("tr", *(tag("th", title, scope="col", **_column(title)) for title in titles))
    body = tag("tbody")
    for first, *rest in lines:
        cells = [
            tag("td", content, **_column(title)) for title, content in zip(titles[1:], rest, strict=True)
        ]
        body.append(tag("tr", tag("th", first, scope="row"), *cells))
    whole = tag("table", tag("caption", tag("span", caption)), tag("thead", header), body, **kind)
    return tag("div", whole, class_="scroll", tabindex="0", role="region", aria_label=caption)


def markdown_table(caption: str, grid: Grid) -> Element:
    """Return the HTML of a table that a target printed."""
    return table(caption, grid.titles, [[first, *map(cell, rest)] for first, *rest in grid.lines])


def cell(text: str) -> Child:
    """Return what a Markdown cell says, what is bold in it as a strong text."""
    parts = BOLD.split(text)
    if len(parts) == 1:
        return text
    return tag("span", *(tag("strong", part) if place % 2 else part for place, part in enumerate(parts)))


def _column(title: Child) -> dict[str, str]:
    return {"class_": "paper"} if title == "paper" else {}
