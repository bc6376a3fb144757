"""What the sections of the report share: the rows of a target that a file has, and HTML elements.

Elements are built as a tree, so that every text is escaped when it is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias, TypeVar
from xml.etree.ElementTree import Element, tostring

from snuh.experiments.run import Row, Select, run_key
from snuh.experiments.target import PROTOCOLS, Aggregate, Choice, DescribedTables, Table, Target, Variant
from snuh.text import sanitize

OUR_METHODS = ("snuh-plus", "snuh")

Value = TypeVar("Value", str, int)


@dataclass(frozen=True)
class Section:
    """A part of the report: elements for the page, and Markdown for the summary; `name` is its anchor."""

    name: str
    title: str
    elements: Sequence[Element]
    markdown: str


@dataclass(frozen=True)
class TargetResults:
    """The part of a target that a results file has."""

    target: Target
    choice: Choice
    variants: Sequence[Variant]
    rows: Sequence[Row]

    @cached_property
    def aggregate(self) -> Aggregate:
        """The rows, aggregated over seeds."""
        return Aggregate(self.choice, self.rows)

    @cached_property
    def output(self) -> DescribedTables:
        """What `snuh reproduce` prints of this part."""
        return self.target.table(self.choice, self.variants, self.rows)

    def only_corpora(self, *corpora: str) -> TargetResults:
        """Return the part on these corpora."""
        return replace(self, choice=replace(self.choice, corpora=corpora))

    def filter_corpora(self, condition: Callable[[str], bool]) -> TargetResults | None:
        """Return the part on the corpora that meet a condition; None if none does."""
        corpora = [corpus for corpus in self.choice.corpora if condition(corpus)]
        return self.only_corpora(*corpora) if corpora else None


def select_results(
    target: Target, choice: Choice, variants: Sequence[Variant], rows: Sequence[Row]
) -> TargetResults | None:
    """Return what the rows have of these variants, on any corpus and with any seed; None if nothing.

    Other code lengths than those of the choice are shown only if the rows have none of its own.
    """
    keys = {choice.run("", variant, 0, 0).key for variant in variants}
    matching = [row for row in rows if _variant_key(row) in keys]
    if not matching:
        return None
    bits = {row["bits"] for row in matching}
    available = replace(
        choice,
        corpora=in_order(choice.corpora, (row["corpus"] for row in matching)),
        bits=tuple(sorted(bits & set(choice.bits) or bits)),
        seeds=tuple(sorted({row["seed"] for row in matching})),
    )
    return TargetResults(target, available, variants, rows)


def find_results(
    target: Target, rows: Sequence[Row], select: Select, *, any_method: bool = False
) -> TargetResults | None:
    """Return what the rows have of a target, of its default methods or of any method."""
    choice = replace(target.default, select=select)
    methods = in_order(choice.methods, (row["method"] for row in rows)) if any_method else choice.methods
    by_method = {method: target.variants(replace(choice, methods=(method,))) for method in methods}
    available = tuple(method for method in methods if select_results(target, choice, by_method[method], rows))
    choice = replace(choice, methods=available)
    return select_results(target, choice, target.variants(choice), rows) if available else None


def in_order(default: Sequence[Value], values: Iterable[Value]) -> tuple[Value, ...]:
    """Return distinct values, those of the default order first."""
    distinct = set(values)
    return tuple(one for one in default if one in distinct) + tuple(sorted(distinct - set(default)))


def paragraphs(text: str) -> list[Element]:
    """Return the paragraphs of a text; line breaks within them are dropped."""
    return [tag("p", " ".join(part.split())) for part in text.split("\n\n") if part.strip()]


def reproduce_hint(select: Select, *targets: str) -> Element:
    """Return the commands that reproduce a section; a target may have options after its name."""
    option = "" if select == "label-free" else f" --select {select}"
    line = tag("p", "Reproduce with ", class_="hint")
    for index, target in enumerate(targets):
        append(line, ", " if index else "")
        append(line, tag("code", f"snuh reproduce {target}{option}"))
    return line


def without_protocol(description: str, select: Select) -> str:
    """Return the description of a target without its protocol, which the report states once."""
    return "\n".join(line for line in description.splitlines() if line != PROTOCOLS[select])


def panels(*charts: Element) -> Element:
    """Return charts side by side, as many as the page is wide."""
    return tag("div", *charts, class_="panels")


def _variant_key(row: Row) -> str:
    """Return the key that all runs of a variant share, for any corpus, code length and seed."""
    return run_key(row | {"corpus": "", "bits": 0, "seed": 0})


# HTML elements

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
