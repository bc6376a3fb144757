"""Sections to look at: maps of the codes, and the case study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from xml.etree.ElementTree import Element

from snuh.experiments.case_study import CASE_STUDY, DESCRIPTION, query_table
from snuh.experiments.maps import MAP, MAP_SIZE, METHOD_DESCRIPTION, NEIGHBORS_DESCRIPTION, same_label
from snuh.experiments.report.charts import MAP_MARKERS, MAX_MAP_LABELS, map_chart, map_marker
from snuh.experiments.report.html import Child, sanitize, table, tag
from snuh.experiments.report.section import Section, find_results, panels, paragraphs, reproduce_hint
from snuh.experiments.run import Row, Select
from snuh.experiments.tables import format_fraction

MIN_NUMBERED_POINTS = 5  # the median of fewer points is not a good place for a label's number
LEGEND_SYMBOLS = dict(zip(MAP_MARKERS, "●▲■", strict=True))

MAP_DESCRIPTION = f"""{METHOD_DESCRIPTION} Each document is one point, in the colour and shape of the first of
its labels; the number of a label is at the median of its points. Below each map:
{NEIGHBORS_DESCRIPTION}."""

# Characters that Markdown could interpret: links, images, tags, emphasis.
MARKDOWN_ESCAPES = str.maketrans({character: f"&#{ord(character)};" for character in "&<>[]*_`!~:@"})


def maps(rows: Sequence[Row], select: Select) -> Section | None:
    """Return the maps of each corpus side by side, with one legend per corpus."""
    results = find_results(MAP, rows, select, any_method=True)
    if results is None:
        return None
    elements = []
    for corpus in results.choice.corpora:
        of_corpus = results.only_corpora(corpus).aggregate.all_rows(results.variants)
        if of_corpus:
            ranks = rank_labels(of_corpus)
            elements += [panels(*(_map(row, ranks) for row in of_corpus)), _legend(corpus, ranks)]
    if not elements:
        return None
    head = [*paragraphs(MAP_DESCRIPTION), reproduce_hint(select, "map")]
    return Section("map", "Maps of the codes", [*head, *elements], results.output.markdown())


def case_study(rows: Sequence[Row], select: Select) -> Section | None:
    """Return one table per query."""
    results = find_results(CASE_STUDY, rows, select, any_method=True)
    if results is None:
        return None
    queries = results.aggregate.all_rows(results.variants)
    if not queries:
        return None
    elements = [*paragraphs(DESCRIPTION), reproduce_hint(select, "case-study"), *map(_query_table, queries)]
    escaped = replace(results, rows=[escape_markdown(row) for row in queries])
    return Section("case-study", "Case study", elements, escaped.output.markdown())


def rank_labels(rows: Sequence[Row]) -> Mapping[str, int]:
    """Number the labels: by name if each gets a marker of its own, otherwise by frequency."""
    counts = Counter(_label(row, point) for row in rows for point in row["observed"]["points"])
    by_count = sorted(counts, key=lambda label: (-counts[label], label))
    names = sorted(counts) if len(counts) <= MAX_MAP_LABELS else by_count
    return {label: rank for rank, label in enumerate(names)}


def escape_markdown(row: Row) -> Row:
    """Return the row of a case study with titles and labels that Markdown shows verbatim."""
    observed = row["observed"]
    query, documents = _escape(observed["query"]), [_escape(doc) for doc in observed["documents"]]
    return row | {"observed": {"query": query, "documents": documents}}


def _escape(doc: dict[str, Any]) -> dict[str, Any]:
    title, *labels = (
        " ".join(sanitize(text).split()).translate(MARKDOWN_ESCAPES)
        for text in (doc["title"], *doc["labels"])
    )
    return doc | {"title": title, "labels": labels}


def _map(row: Row, ranks: Mapping[str, int]) -> Element:
    points = row["observed"]["points"]
    title = f"{row['method']}, {row['corpus']}, {row['bits']} bits, seed {row['seed']}"
    description = (
        f"A map of {len(points):,} documents, with a colour and a shape for each of {len(ranks)} labels."
    )
    groups: dict[int, list[Sequence[int]]] = {}
    for point in points:
        groups.setdefault(ranks[_label(row, point)], []).append(point[:2])
    chart = map_chart(title, description, groups, size=MAP_SIZE, min_numbered=MIN_NUMBERED_POINTS)
    fraction = format_fraction(same_label(points), digits=3)
    return tag("figure", chart, tag("figcaption", f"{title}: {fraction} with the same label"))


def _legend(corpus: str, ranks: Mapping[str, int]) -> Element:
    items = [
        tag("li", _symbol(rank), f"{rank + 1} ", tag("bdi", label))
        for label, rank in ranks.items()
        if rank < MAX_MAP_LABELS
    ]
    if len(ranks) > MAX_MAP_LABELS:
        items.append(tag("li", _symbol(MAX_MAP_LABELS), f"{len(ranks) - MAX_MAP_LABELS} other labels"))
    return tag("ul", *items, class_="legend", aria_label=f"labels of {corpus}")


def _symbol(rank: int) -> Element:
    color, marker = map_marker(rank)
    return tag("span", LEGEND_SYMBOLS[marker], class_=f"{color} symbol", aria_hidden="true")


def _label(row: Row, point: Sequence[int]) -> str:
    name: str = row["observed"]["labels"][point[2]]
    return name


def _query_table(row: Row) -> Element:
    source = query_table(row)
    lines: list[list[Child]] = [
        [first, *(tag("bdi", text) for text in texts)] for first, *texts in source.lines
    ]
    return table(source.caption, source.titles, lines, class_="texts")
