"""Matplotlib figures as inline SVG in the colours of the page.

Colours are placeholders while matplotlib draws; in the SVG they become the variables of `page.css`, so charts
follow its light, dark and print colours.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from matplotlib.figure import Figure

from snuh.experiments.report.html import tag

SERIES_COLORS = ("one", "two", "three", "four", "five")
MAP_COLORS = tuple(f"hue{index}" for index in range(7))
CSS_VARIABLES = ("ink", "soft", "hair", "paper", "rest", "rest-line", *SERIES_COLORS, *MAP_COLORS)
PLACEHOLDERS = {name: f"#0000{index:02x}" for index, name in enumerate(CSS_VARIABLES, start=1)}

UNUSED = re.compile(
    r"<style.*?</style>|<clipPath.*?</clipPath>| clip-path=\"[^\"]*\"| xmlns(:xlink)?=\"[^\"]*\""
    r"|font-family: [^;\"]*;? ?| transform=\"rotate\(-0 [^\"]*\"",
    re.DOTALL,
)
GROUP_ID = re.compile(r"(?<=<g) id=\"(?!series-)[^\"]*\"")
COORDINATES = re.compile(r" (d|x|y|transform)=\"[^\"]*\"")


def inline_svg(
    figure: Figure,
    title: str,
    description: str,
    *,
    css_class: str,
    tooltips: Mapping[str, Sequence[str]] | None = None,
) -> Element:
    """Return a figure as an element of the page.

    Args:
        figure: to draw, with colours from PLACEHOLDERS.
        title: of the chart, for screen readers.
        description: of what it shows, for screen readers.
        css_class: of the element.
        tooltips: of the markers, by the group id (`gid`) of their artist, which starts with "series-".
    """
    file = io.StringIO()
    metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(file, format="svg", transparent=True, metadata=metadata)
    drawn = ElementTree.fromstring(_simplify(file.getvalue()))
    for group, texts in (tooltips or {}).items():
        _add_tooltips(drawn, group, texts)
    for group_element in drawn.iter("g"):
        group_element.attrib.pop("id", None)
        _hoist_style(group_element)
    names = tag("title", title), tag("desc", description)
    return tag("svg", *names, *drawn, viewBox=drawn.attrib["viewBox"], role="img", class_=css_class)


def make_ids_unique(page: Element) -> None:
    """Number the ids of markers by chart, as ids must be unique within a page."""
    for index, chart in enumerate(page.iter("svg")):
        for element in chart.iter():
            if "id" in element.attrib:
                element.set("id", f"{element.attrib['id']}-{index}")
            if "href" in element.attrib:
                element.set("href", f"{element.attrib['href']}-{index}")


def _simplify(source: str) -> str:
    """Drop what a page does not need, and use its colours."""
    source = source[source.index("<svg") :]
    source = GROUP_ID.sub("", UNUSED.sub("", source))
    source = COORDINATES.sub(lambda attribute: _round_numbers(attribute[0]), source)
    source = re.sub(r">\s+<", "><", source).replace("\n", "")
    for name, placeholder in PLACEHOLDERS.items():
        source = source.replace(placeholder, f"var(--{name})")
    return source.replace("xlink:href", "href")


def _round_numbers(text: str) -> str:
    return re.sub(r"\d+\.\d+", lambda number: f"{float(number[0]):.1f}".removesuffix(".0"), text)


def _add_tooltips(drawn: Element, group: str, texts: Sequence[str]) -> None:
    for marker, text in zip(drawn.iterfind(f".//g[@id='{group}']//use"), texts, strict=True):
        if text:
            marker.append(tag("title", text))


def _hoist_style(group: Element) -> None:
    """Move the style that all markers of a group share to the group: a map has thousands of them."""
    styles = {child.get("style") for child in group if child.tag == "use"}
    if len(styles) == 1 and all(child.tag == "use" for child in group):
        group.set("style", str(styles.pop()))
        for child in group:
            del child.attrib["style"]
