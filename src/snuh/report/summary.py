"""The report as Markdown, to be read where a page cannot be opened."""

from __future__ import annotations

from snuh.report.report import Report

TITLE = "The paper's experiments, repeated"
SIGNS = str.maketrans({sign: f"&#{ord(sign)};" for sign in "&<["})  # facts come from a file


def summary(report: Report, page: str) -> str:
    """Return the summary; `page` is the name of the page that has the plots."""
    lines = [
        f"# {TITLE}",
        "",
        f"Made by `snuh report` from `{report.source}` alone. Plots and maps are in `{page}`.",
        "",
    ]
    for name, values in report.facts:
        lines.append(f"- {name}: {'; '.join(values).translate(SIGNS)}")
    for protocol in report.protocols:
        lines += ["", f"## {protocol.title}", "", protocol.about]
        for section in protocol.sections:
            lines += ["", f"### {section.title}", "", section.markdown]
    return "\n".join(lines) + "\n"
