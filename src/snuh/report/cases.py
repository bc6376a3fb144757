"""The case study: a query, and documents ever further from it, a table for each query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from xml.etree.ElementTree import Element

from snuh.experiments.case_study import ABOUT, CASE_STUDY
from snuh.experiments.run import Row, Select
from snuh.report.choices import of_methods
from snuh.report.grid import table
from snuh.report.section import Section, paragraphs, repeat
from snuh.report.tags import Child, plain, tag

# What Markdown could take for something else than a text: a link, an image, a tag.
SIGNS = str.maketrans({sign: f"&#{ord(sign)};" for sign in "&<>[]*_`!~:@"})


def cases(rows: Sequence[Row], select: Select) -> Section | None:
    """Return a table for each query."""
    held = of_methods(CASE_STUDY, rows, select, others=True)
    if held is None:
        return None
    found = [
        row
        for corpus in held.choice.corpora
        for bits in held.choice.bits
        for variant in held.variants
        for row in held.figures.rows(corpus, bits, variant)
    ]
    if not found:
        return None
    elements = [*paragraphs(ABOUT), repeat(select, "case-study"), *map(_table, found)]
    text = CASE_STUDY.table(held.choice, held.variants, [harmless(row) for row in found]).markdown()
    return Section("case-study", "Case study: ever further from a query", elements, text)


def harmless(row: Row) -> Row:
    """Return the row with titles and labels that Markdown shows as they are."""
    observed = row["observed"]
    query, documents = _harmless(observed["query"]), [_harmless(doc) for doc in observed["documents"]]
    return row | {"observed": {"query": query, "documents": documents}}


def _harmless(doc: dict[str, Any]) -> dict[str, Any]:
    title, *labels = (
        " ".join(plain(text).split()).translate(SIGNS) for text in (doc["title"], *doc["labels"])
    )
    return doc | {"title": title, "labels": labels}


def _table(row: Row) -> Element:
    observed = row["observed"]
    lines = [_line("query", observed["query"])]
    lines += [_line(str(doc["distance"]), doc) for doc in observed["documents"]]
    caption = f"{row['corpus']}, {row['method']}, {row['bits']} bits, seed {row['seed']}"
    return table(caption, ["distance", "labels", "title"], lines, class_="texts")


def _line(distance: str, doc: dict[str, Any]) -> list[Child]:
    return [distance, tag("bdi", ", ".join(doc["labels"])), tag("bdi", doc["title"])]
