"""HTML elements, built as a tree, so that every text is escaped when it is written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias
from xml.etree.ElementTree import Element, tostring

from snuh.experiments.target import Table
from snuh.text import sanitize

Child: TypeAlias = Element | str

BOLD = re.compile(r"\*\*(.+?)\*\*")


def tag(kind: str, /, *children: Child, **attributes: str) -> Element:
    """Return an element; `class_` is the attribute class, and `aria_label` is aria-label."""
    element = Element(
        kind,
        {
            key.rstrip("_").replace("_", "-"): sanitize(value, multiline=True)
            for key, value in attributes.items()
        },
    )
    for child in children:
        append(element, child)
    return element


def append(element: Element, child: Child) -> None:
    """Append an element or a text."""
    if isinstance(child, Element):
        element.append(child)
    elif len(element):
        element[-1].tail = (element[-1].tail or "") + sanitize(child, multiline=True)
    else:
        element.text = (element.text or "") + sanitize(child, multiline=True)


def serialize(element: Element) -> str:
    """Return an element as HTML."""
    return tostring(element, encoding="unicode", method="html")


def table(
    caption: str, titles: Sequence[Child], lines: Sequence[Sequence[Child]], **attributes: str
) -> Element:
    """Return a table in a scrollable box; the first cell of a line is its heading."""
    header = tag("tr", *(tag("th", title, scope="col", **_column(title)) for title in titles))
    body = tag("tbody")
    for first, *rest in lines:
        cells = [tag("td", cell, **_column(title)) for title, cell in zip(titles[1:], rest, strict=True)]
        body.append(tag("tr", tag("th", first, scope="row"), *cells))
    content = tag("table", tag("caption", tag("span", caption)), tag("thead", header), body, **attributes)
    return tag("div", content, class_="scroll", tabindex="0", role="region", aria_label=caption)


def results_table(caption: str, source: Table) -> Element:
    """Return a table of results as HTML."""
    return table(caption, source.titles, [[first, *map(render_bold, rest)] for first, *rest in source.lines])


def render_bold(text: str) -> Child:
    """Return a cell with its Markdown bold as a strong element."""
    parts = BOLD.split(text)
    if len(parts) == 1:
        return text
    return tag("span", *(tag("strong", part) if index % 2 else part for index, part in enumerate(parts)))


def _column(title: Child) -> dict[str, str]:
    return {"class_": "paper"} if title == "paper" else {}
