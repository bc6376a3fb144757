"""The report as one HTML page that needs no network, no other file and no script."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from xml.etree.ElementTree import Element

from snuh.report.report import Protocol, Report
from snuh.report.section import Section
from snuh.report.summary import TITLE
from snuh.report.tags import tag, written

ABOUT = (
    "What the methods of this software reach on the experiments of Ou et al., Integrating Semantics and "
    "Neighborhood Information with Graph-Driven Generative Models for Document Retrieval (ACL 2021). "
    "All of it is made from the finished runs of one file, but for the figures that the paper prints."
)


def page(report: Report) -> str:
    """Return the page."""
    style = files("snuh.report").joinpath("page.css").read_text(encoding="utf-8")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{TITLE}: snuh"),
        tag("style", style),
    )
    opening = tag(
        "header",
        tag("h1", TITLE),
        tag("p", ABOUT),
        tag("p", "Made by ", tag("code", "snuh report"), " from ", tag("code", report.source), "."),
        _facts(report.facts),
    )
    body = tag("body", opening, _contents(report), tag("main", *map(_protocol, report.protocols)))
    return "<!DOCTYPE html>\n" + written(tag("html", head, body, lang="en")) + "\n"


def _facts(facts: Sequence[tuple[str, Sequence[str]]]) -> Element:
    """Return names and values."""
    found = tag("dl")
    for name, values in facts:
        found.append(tag("dt", name))
        found.append(tag("dd", "; ".join(values)))
    return found


def _contents(report: Report) -> Element:
    lists = []
    for protocol in report.protocols:
        links = [
            tag("li", tag("a", section.title, href=f"#{_place(protocol, section)}"))
            for section in protocol.sections
        ]
        lists.append(tag("li", tag("a", protocol.title, href=f"#{protocol.select}"), tag("ul", *links)))
    return tag("nav", tag("ul", *lists), aria_label="Contents")


def _protocol(protocol: Protocol) -> Element:
    opening = [tag("h2", protocol.title, id=protocol.select), tag("p", protocol.about)]
    return tag("section", *opening, *(_section(protocol, section) for section in protocol.sections))


def _section(protocol: Protocol, section: Section) -> Element:
    heading = tag("h3", section.title, id=_place(protocol, section))
    return tag("section", heading, *section.elements, class_=section.name)


def _place(protocol: Protocol, section: Section) -> str:
    return f"{protocol.select}-{section.name}"
