"""Rendering the report: one HTML page without scripts or other files, and a Markdown summary."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from xml.etree.ElementTree import Element

from snuh.experiments.report.html import serialize, tag
from snuh.experiments.report.report import Protocol, Report
from snuh.experiments.report.section import Section
from snuh.experiments.report.svg import make_ids_unique

TITLE = "The paper's experiments, reproduced"
DESCRIPTION = (
    "Results of snuh on the experiments of Ou et al., Integrating Semantics and Neighborhood Information "
    "with Graph-Driven Generative Models for Document Retrieval (ACL 2021). Everything on this page is "
    "computed from one results file, except for the numbers that the paper reports."
)
MARKDOWN_ESCAPES = str.maketrans({character: f"&#{ord(character)};" for character in "&<["})


def render_html(report: Report) -> str:
    """Return the page."""
    style = files(__package__).joinpath("page.css").read_text(encoding="utf-8")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{TITLE}: snuh"),
        tag("style", style),
    )
    header = tag(
        "header",
        tag("h1", TITLE),
        tag("p", DESCRIPTION),
        tag("p", "Made by ", tag("code", "snuh report"), " from ", tag("code", report.source), "."),
        _provenance(report.provenance),
    )
    body = tag("body", header, _contents(report), tag("main", *map(_protocol, report.protocols)))
    make_ids_unique(body)
    return "<!DOCTYPE html>\n" + serialize(tag("html", head, body, lang="en")) + "\n"


def render_markdown(report: Report, page: str) -> str:
    """Return the summary; `page` is the name of the HTML file, which has the charts."""
    lines = [
        f"# {TITLE}",
        "",
        f"Made by `snuh report` from `{report.source}` alone. Charts and maps are in `{page}`.",
        "",
    ]
    for name, values in report.provenance:
        lines.append(f"- {name}: {'; '.join(values).translate(MARKDOWN_ESCAPES)}")
    for protocol in report.protocols:
        lines += ["", f"## {protocol.title}", "", protocol.description]
        for section in protocol.sections:
            lines += ["", f"### {section.title}", "", section.markdown]
    return "\n".join(lines) + "\n"


def _provenance(values: Sequence[tuple[str, Sequence[str]]]) -> Element:
    terms = tag("dl")
    for name, of_name in values:
        terms.append(tag("dt", name))
        terms.append(tag("dd", "; ".join(of_name)))
    return terms


def _contents(report: Report) -> Element:
    lists = []
    for protocol in report.protocols:
        links = [
            tag("li", tag("a", section.title, href=f"#{_anchor(protocol, section)}"))
            for section in protocol.sections
        ]
        lists.append(tag("li", tag("a", protocol.title, href=f"#{protocol.select}"), tag("ul", *links)))
    return tag("nav", tag("ul", *lists), aria_label="Contents")


def _protocol(protocol: Protocol) -> Element:
    heading = [tag("h2", protocol.title, id=protocol.select), tag("p", protocol.description)]
    return tag("section", *heading, *(_section(protocol, section) for section in protocol.sections))


def _section(protocol: Protocol, section: Section) -> Element:
    heading = tag("h3", section.title, id=_anchor(protocol, section))
    return tag("section", heading, *section.elements, class_=section.name)


def _anchor(protocol: Protocol, section: Section) -> str:
    return f"{protocol.select}-{section.name}"
