"""Sections with figures: cost of training, the scores without labels, maps of the codes, the case study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any
from xml.etree.ElementTree import Element

from snuh.experiments.case_study import CASE_STUDY, DESCRIPTION, query_table
from snuh.experiments.efficiency import EFFICIENCY, Cost, costs
from snuh.experiments.maps import MAP, MAP_SIZE, METHOD_DESCRIPTION, NEIGHBORS_DESCRIPTION, same_label
from snuh.experiments.report.charts import (
    BACKGROUND,
    MAP_MARKERS,
    MAX_MAP_LABELS,
    Point,
    Series,
    Text,
    line_chart,
    map_chart,
    map_marker,
    scatter_chart,
    series_color,
)
from snuh.experiments.report.section import (
    OUR_METHODS,
    Child,
    Section,
    TargetResults,
    find_results,
    in_order,
    panels,
    paragraphs,
    reproduce_hint,
    results_table,
    table,
    tag,
)
from snuh.experiments.run import Row, Select
from snuh.experiments.score_study import SCORE_STUDY, ScoreQuality, is_scored, score_quality
from snuh.experiments.scores import TUNING_SCORE
from snuh.experiments.target import format_fraction
from snuh.text import sanitize

COST_METRICS: dict[str, Callable[[Cost], float]] = {
    "seconds per epoch": lambda cost: cost.epoch_seconds,
    "seconds per fit": lambda cost: cost.fit_seconds,
    "peak megabytes": lambda cost: cost.megabytes,
}


def efficiency(rows: Sequence[Row], select: Select) -> Section | None:
    """Return charts by the number of documents, and the table."""
    results = find_results(EFFICIENCY, rows, select)
    if results is None:
        return None
    (table,) = results.output.tables
    if not table.lines:
        return None
    first, *others = results.choice.methods
    legend = f"Solid lines are {first}" + "".join(f", dashed lines {other}" for other in others)
    elements = [
        *paragraphs(f"{results.output.description}\n\n{legend}; both axes are logarithmic."),
        reproduce_hint(select, "efficiency"),
        panels(*(_cost_chart(results, metric) for metric in COST_METRICS)),
        results_table("Seconds and memory of training", table),
    ]
    return Section("efficiency", "Efficiency: seconds and memory", elements, results.output.markdown())


def _cost_chart(results: TargetResults, metric: str) -> Element:
    text = Text(
        metric,
        f"{metric} by the number of training documents, one line per corpus and method.",
        x_label="documents",
        y_label=metric,
    )
    return line_chart(text, _cost_series(results, COST_METRICS[metric]), is_log=True)


def _cost_series(results: TargetResults, metric: Callable[[Cost], float]) -> list[Series]:
    choice, series = results.choice, []
    for index, corpus in enumerate(choice.corpora):
        for bits in choice.bits:
            by_documents = costs(choice, corpus, bits, results.rows)
            length = f" {bits}" if len(choice.bits) > 1 else ""
            for position, method in enumerate(choice.methods):
                points = [
                    Point(
                        documents, value, tooltip=f"{corpus}, {method}, {documents:,} documents: {value:,.4g}"
                    )
                    for documents, by_method in sorted(by_documents.items())
                    if (value := metric(by_method[position])) > 0
                ]
                if points:
                    name = f"{corpus}{length} {method}"
                    series.append(Series(name, points, series_color(index), is_dashed=position > 0))
    return series


SCORE_LEGEND = "Bold: the highest correlation and the lowest loss of a column."

SCORE_CHARTS = f"""The charts show precision by the score "{TUNING_SCORE}", which snuh tune uses to compare
settings, one point per run. Filled points are runs of snuh-plus (blue) and snuh (orange), empty points are
runs of other methods. The table has all scores that were tried."""


def score_study(rows: Sequence[Row], select: Select) -> Section | None:
    """Return a chart per corpus, and the table of the candidates."""
    results = find_results(SCORE_STUDY, [row for row in rows if is_scored(row)], select)
    if results is None:
        return None
    # One seed: the study is about methods and settings, and those with more seeds would weigh more.
    seeds = tuple(seed for seed in results.choice.seeds if seed in SCORE_STUDY.default.seeds)
    results = replace(results, choice=replace(results.choice, seeds=seeds or results.choice.seeds))
    rated = [
        (corpus, bits)
        for corpus, bits in product(results.choice.corpora, results.choice.bits)
        if _score_quality(results, corpus, bits)
    ]
    if not rated:
        return None
    results = results.only_corpora(*in_order(results.choice.corpora, (corpus for corpus, _ in rated)))
    output = replace(results.output, description=f"{results.output.description}\n{SCORE_LEGEND}")
    (table,) = output.tables
    elements = [
        *paragraphs(f"{output.description}\n\n{SCORE_CHARTS}"),
        reproduce_hint(select, "score"),
        panels(*(_score_chart(results, corpus, bits) for corpus, bits in rated)),
        results_table("Scores without labels: rank correlation, and precision lost", table),
    ]
    return Section("score", "The score without labels", elements, output.markdown())


def _labelled_rows(results: TargetResults, corpus: str, bits: int) -> list[tuple[str, Row]]:
    return [
        (variant.label, row)
        for variant in results.variants
        for row in results.aggregate.rows(corpus, bits, variant)
    ]


def _score_quality(results: TargetResults, corpus: str, bits: int) -> ScoreQuality | None:
    return score_quality([row for _, row in _labelled_rows(results, corpus, bits)], TUNING_SCORE)


def _score_chart(results: TargetResults, corpus: str, bits: int) -> Element:
    quality = _score_quality(results, corpus, bits)
    note = (
        f"rank correlation {format_fraction(quality.correlation, digits=2)}, {quality.runs} runs"
        if quality
        else ""
    )
    colors = {method: series_color(index) for index, method in enumerate(OUR_METHODS)}
    points: dict[str, list[Point]] = {color: [] for color in (BACKGROUND, *reversed(colors.values()))}
    for label, row in _labelled_rows(results, corpus, bits):
        points[colors.get(row["method"], BACKGROUND)].append(_score_point(label, row))
    text = Text(
        f"{corpus}, {bits} bits",
        f"Precision at 100 by the score without labels on {corpus}, one point per run: {note}.",
        x_label=f'score "{TUNING_SCORE}"',
        y_label="precision@100",
        note=note,
    )
    return scatter_chart(text, [Series("", of_color, color) for color, of_color in points.items()])


def _score_point(label: str, row: Row) -> Point:
    score, precision = row["candidate_scores"][TUNING_SCORE], row["precision"]["100"]
    return Point(score, precision, tooltip=f"{label}: score {score:.3f}, precision {precision:.3f}")


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
    counts = Counter(_label(row, point) for row in rows for point in row["artifact_data"]["points"])
    by_count = sorted(counts, key=lambda label: (-counts[label], label))
    names = sorted(counts) if len(counts) <= MAX_MAP_LABELS else by_count
    return {label: rank for rank, label in enumerate(names)}


def escape_markdown(row: Row) -> Row:
    """Return the row of a case study with titles and labels that Markdown shows verbatim."""
    data = row["artifact_data"]
    query, documents = _escape(data["query"]), [_escape(doc) for doc in data["documents"]]
    return row | {"artifact_data": {"query": query, "documents": documents}}


def _escape(doc: dict[str, Any]) -> dict[str, Any]:
    title, *labels = (
        " ".join(sanitize(text, multiline=True).split()).translate(MARKDOWN_ESCAPES)
        for text in (doc["title"], *doc["labels"])
    )
    return doc | {"title": title, "labels": labels}


def _map(row: Row, ranks: Mapping[str, int]) -> Element:
    points = row["artifact_data"]["points"]
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
    name: str = row["artifact_data"]["labels"][point[2]]
    return name


def _query_table(row: Row) -> Element:
    source = query_table(row)
    lines: list[list[Child]] = [
        [first, *(tag("bdi", text) for text in texts)] for first, *texts in source.lines
    ]
    return table(source.caption, source.titles, lines, class_="texts")
