"""Tables as HTML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree.ElementTree import Element

from snuh.experiments.cells import Table
from snuh.report.tags import Child, tag

BOLD = re.compile(r"\*\*(.+?)\*\*")


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


def figures_table(caption: str, given: Table) -> Element:
    """Return a table of figures, such as a target's."""
    return table(caption, given.titles, [[first, *map(cell, rest)] for first, *rest in given.lines])


def cell(text: str) -> Child:
    """Return what a cell says, what is bold in it as a strong text."""
    parts = BOLD.split(text)
    if len(parts) == 1:
        return text
    return tag("span", *(tag("strong", part) if place % 2 else part for place, part in enumerate(parts)))


def _column(title: Child) -> dict[str, str]:
    return {"class_": "paper"} if title == "paper" else {}
