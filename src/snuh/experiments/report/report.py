"""The report: its content, rendered as one HTML page without scripts or other files, and as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, TypeAlias, get_args
from xml.etree.ElementTree import Element

from snuh.errors import InputError
from snuh.experiments.report.charts import make_ids_unique
from snuh.experiments.report.figures import case_study, efficiency, maps, score_study
from snuh.experiments.report.paired_differences import paired_differences
from snuh.experiments.report.precision import appendix, sweeps, table1, table2
from snuh.experiments.report.section import Section, serialize, tag
from snuh.experiments.run import Row, Select, latest_rows
from snuh.experiments.target import PROTOCOLS

BuildSection: TypeAlias = Callable[[Sequence[Row], Select], Section | None]

SECTIONS: Sequence[BuildSection] = (
    table1,
    paired_differences,
    table2,
    sweeps,
    appendix,
    score_study,
    efficiency,
    maps,
    case_study,
)
PROTOCOL_TITLES: dict[Select, str] = {"label-free": "Without labels", "labels": "The paper's protocol"}
UNKNOWN = "not recorded"
DIGEST_DIGITS = 12


@dataclass(frozen=True)
class Protocol:
    """The sections of one protocol; no table mixes the runs of two."""

    select: Select
    title: str
    description: str
    sections: Sequence[Section]


@dataclass(frozen=True)
class Report:
    """The content of the page and of the summary."""

    source: str  # the name of the results file
    provenance: Sequence[tuple[str, Sequence[str]]]
    protocols: Sequence[Protocol]


def build_report(rows: Sequence[Row], source: str) -> Report:
    """Build the report of a results file; InputError if it has no section."""
    _check_names(rows, source)
    protocols = []
    for select in get_args(Select):
        of_protocol = [row for row in rows if row["select"] == select]
        sections = [section for build in SECTIONS if (section := build(of_protocol, select)) is not None]
        if sections:
            protocols.append(Protocol(select, PROTOCOL_TITLES[select], PROTOCOLS[select], sections))
    if not protocols:
        raise InputError(
            f"{source} has {'no runs' if not rows else 'no runs of a table or figure'} to report: "
            'start with "snuh reproduce table1 --quick"'
        )
    return Report(source, provenance(rows), protocols)


def provenance(rows: Sequence[Row]) -> list[tuple[str, list[str]]]:
    """Return what produced the rows, as names and values, several values where rows differ."""
    runs = list(latest_rows(rows).values())
    failed = sum(row["error"] is not None for row in runs)
    dates = sorted(str(row["date"])[:10] for row in runs if row.get("date"))
    return [
        ("runs", [f"{len(runs):,}" + (f", of which {failed:,} failed" if failed else "")]),
        ("seeds", _count(f"seed {row['seed']}" for row in runs)),
        ("corpora", _count(str(row["corpus"]) for row in runs)),
        ("documents", _checksums(runs)),
        ("methods", _count(str(row["method"]) for row in runs)),
        ("dates", [" to ".join(sorted({dates[0], dates[-1]})) if dates else UNKNOWN]),
        ("commits", _count(_commit(row.get("commit")) for row in runs)),
        ("versions", _count(_versions(row) for row in runs)),
        ("machines", _count(_machine(row.get("machine")) for row in runs)),
    ]


def _check_names(rows: Sequence[Row], source: str) -> None:
    """Raise InputError for a name with characters that have a meaning in Markdown tables."""
    for name in {str(row[field]) for row in rows for field in ("corpus", "method")}:
        if not name.isprintable() or any(character in "|<>&[]*`\\" for character in name):
            raise InputError(f"{source} has runs of {name!r}, which is not the name of a corpus or method")


def _count(values: Iterable[str]) -> list[str]:
    """Return the distinct values, with the number of runs of each if there are several."""
    counts = Counter(values)
    if len(counts) == 1:
        return list(counts)
    ranked = sorted(counts, key=lambda value: (-counts[value], value))
    return [f"{value} ({counts[value]:,})" for value in ranked]


def _checksums(rows: Iterable[Row]) -> list[str]:
    known = {(row["corpus"], row["corpus_sha256"][:DIGEST_DIGITS]) for row in rows if row["corpus_sha256"]}
    return [f"{corpus} sha256 {checksum}" for corpus, checksum in sorted(known)] or [UNKNOWN]


def _commit(commit: str | None) -> str:
    if not commit:
        return UNKNOWN
    digest, dash, suffix = commit.partition("-")
    return digest[:DIGEST_DIGITS] + dash + suffix


def _versions(row: Row) -> str:
    versions = {"snuh": row.get("snuh"), **(row.get("versions") or {})}
    return ", ".join(f"{name} {version}" for name, version in versions.items() if version) or UNKNOWN


def _machine(machine: dict[str, Any] | None) -> str:
    """Return what identifies a machine, without its load."""
    if not machine:
        return UNKNOWN
    parts = (machine.get("cpu"), f"{machine.get('cores')} cores", machine.get("system"))
    return ", ".join(str(part) for part in parts if part)


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
