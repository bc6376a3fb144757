"""A part of the report: elements for the page, and Markdown for the summary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from snuh.experiments.figures import PROTOCOLS
from snuh.experiments.run import Select
from snuh.report.tags import add, tag


@dataclass(frozen=True)
class Section:
    """One part of what a protocol's runs say; `name` is for links to it."""

    name: str
    title: str
    elements: Sequence[Element]
    markdown: str


def paragraphs(text: str) -> list[Element]:
    """Return the paragraphs of a text, as a page breaks their lines itself."""
    return [tag("p", " ".join(part.split())) for part in text.split("\n\n") if part.strip()]


def repeat(select: Select, *targets: str) -> Element:
    """Return a line that says how to repeat what is shown; a target may have options after its name."""
    option = "" if select == "label-free" else f" --select {select}"
    line = tag("p", "Repeat it with ", class_="repeat")
    for place, target in enumerate(targets):
        add(line, ", " if place else "")
        add(line, tag("code", f"snuh reproduce {target}{option}"))
    return line


def without_protocol(about: str, select: Select) -> str:
    """Return what a target says above its table, without the protocol: a report says it once."""
    return "\n".join(line for line in about.splitlines() if line != PROTOCOLS[select])


def figures(*drawings: Element) -> Element:
    """Return drawings side by side, as far as the page is wide."""
    return tag("div", *drawings, class_="panels")
