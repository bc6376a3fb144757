"""Sections on precision: the tables next to the paper's, by code length, and the parameter sweeps."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any
from xml.etree.ElementTree import Element

from snuh.experiments.precision_tables import ABLATIONS, APPENDIX, APPENDIX_BASELINES, TABLE1, TABLE2
from snuh.experiments.report.charts import (
    BACKGROUND,
    Point,
    Series,
    Text,
    line_chart,
    series_color,
)
from snuh.experiments.report.section import (
    OUR_METHODS,
    Section,
    TargetResults,
    find_results,
    in_order,
    panels,
    paragraphs,
    reproduce_hint,
    results_table,
    select_results,
    tag,
    without_protocol,
)
from snuh.experiments.run import Row, Select
from snuh.experiments.sweeps import SWEEPS, variants_from_defaults
from snuh.experiments.target import Target, Variant, format_fraction
from snuh.training import resolve_for_large_corpus

OUTLIER_GAP = 0.7  # of the range of the other lines; lines further below them are named, not drawn

LENGTH_CHARTS = (
    "Means over the seeds; error bars are one standard deviation, given at least two seeds. "
    "Coloured: snuh-plus, snuh, and the best other method at the code lengths that it has."
)


def table1(rows: Sequence[Row], select: Select) -> Section | None:
    """Return every method, with charts of precision by code length."""
    return _table_section(find_results(TABLE1, rows, select), "Table 1: every method", has_charts=True)


def table2(rows: Sequence[Row], select: Select) -> Section | None:
    """Return the ablation, if there are runs of SNUH with less correlation."""
    ablated = {variant.label for variant in ABLATIONS if variant.parameters}
    results = _with_any(ablated, find_results(TABLE2, rows, select))
    return _table_section(results, "Table 2: the effect of the correlations")


def appendix(rows: Sequence[Row], select: Select) -> Section | None:
    """Return SNUH and the baselines of the appendix, on corpora with runs of one of them."""
    results = _with_any(APPENDIX_BASELINES, find_results(APPENDIX, rows, select))
    return _table_section(results, "The appendix: SNUH beside RBSH and PairRec")


def sweeps(rows: Sequence[Row], select: Select) -> Section | None:
    """Return the sweeps with at least two values on a corpus, those of snuh first."""
    charts, tables, texts, commands, description = [], [], [], [], ""
    for method in in_order(("snuh",), (row["method"] for row in rows)):
        for target in SWEEPS:
            results = sweep_results(target, method, rows, select)
            if results is None:
                continue
            (table,) = results.output.tables
            charts.append(_sweep_chart(results))
            tables.append(results_table(f"{target.name} of {method}", table))
            texts.append(table.markdown())
            description = "\n".join(results.output.description.splitlines()[:2])  # the same for all
            commands.append(target.name + ("" if method == "snuh" else f" --method {method}"))
    if not charts:
        return None
    elements = [*paragraphs(description), reproduce_hint(select, *commands), panels(*charts), *tables]
    markdown = "\n\n".join([description, *texts])
    return Section("sweeps", "Sweeps: one parameter at several values", elements, markdown)


def sweep_results(target: Target, method: str, rows: Sequence[Row], select: Select) -> TargetResults | None:
    """Return what the rows have of a sweep, on the corpora with at least two values."""
    defaults = known_defaults(method, rows)
    if target.name not in defaults:
        return None
    choice = replace(target.default, methods=(method,), select=select)
    results = select_results(target, choice, variants_from_defaults(defaults, target.name, choice), rows)
    return results and results.filter_corpora(
        lambda corpus: any(len(_sweep_points(results, corpus, bits)) > 1 for bits in results.choice.bits)
    )


def known_defaults(method: str, rows: Sequence[Row]) -> dict[str, Any]:
    """Return a method's defaults as far as rows contain them: None if every row was given the parameter."""
    defaults: dict[str, Any] = {}
    for row in rows:
        if row["method"] == method:
            for name, value in resolve_for_large_corpus(row.get("all_parameters") or {}).items():
                known = defaults.setdefault(name, None)
                defaults[name] = known if name in row["parameters"] else value
    return defaults


def without_outliers(lines: Sequence[Series]) -> tuple[list[Series], list[Series]]:
    """Separate the lines from those so far below them that a common axis would squeeze the others."""
    remaining, outliers = sorted(lines, key=_max), []
    while len(remaining) > 2:
        values = [point.y for line in remaining[1:] for point in line.points]
        if min(values) - _max(remaining[0]) <= OUTLIER_GAP * (max(values) - min(values)):
            break
        outliers.append(remaining.pop(0))
    return remaining, outliers


def best_baseline(lines: Sequence[Series]) -> str:
    """Return the best other method, by its mean gap to the mean of all methods at the same code lengths."""
    values: dict[float, list[float]] = {}
    for line in lines:
        for point in line.points:
            values.setdefault(point.x, []).append(point.y)
    means = {x: statistics.mean(at_x) for x, at_x in values.items()}
    gaps = {
        line.name: statistics.mean(point.y - means[point.x] for point in line.points)
        for line in lines
        if line.name not in OUR_METHODS
    }
    return max(gaps, key=lambda name: gaps[name], default="")


def _table_section(results: TargetResults | None, title: str, *, has_charts: bool = False) -> Section | None:
    if results is None:
        return None
    choice = results.choice
    description = without_protocol(results.output.description, choice.select)
    tables, texts = [], [description]
    for corpus in choice.corpora:
        part = replace(results.only_corpora(corpus), variants=_variants_with_runs(results, corpus))
        (table,) = part.output.tables
        tables.append(results_table(f"{title.partition(':')[0]}, {corpus}", table.drop_column("corpus")))
        texts.append(table.markdown())
    elements = [*paragraphs(description), reproduce_hint(choice.select, results.target.name), *tables]
    charts = [_length_chart(results, corpus) for corpus in choice.corpora] if has_charts else []
    if drawn := [chart for chart in charts if chart is not None]:
        elements += [tag("h4", "Precision by code length"), tag("p", LENGTH_CHARTS), panels(*drawn)]
    return Section(results.target.name, title, elements, "\n\n".join(texts))


def _with_any(labels: Collection[str], results: TargetResults | None) -> TargetResults | None:
    """Return the part on corpora that have a run of at least one of these variants."""
    return results and results.filter_corpora(
        lambda corpus: any(variant.label in labels for variant in _variants_with_runs(results, corpus))
    )


def _variants_with_runs(results: TargetResults, corpus: str) -> list[Variant]:
    """Return the variants with runs on a corpus, failed ones included."""
    return [
        variant
        for variant in results.variants
        if any(results.aggregate.cell(corpus, bits, variant).details for bits in results.choice.bits)
    ]


def _length_chart(results: TargetResults, corpus: str) -> Element | None:
    """Return precision by code length; None if all runs have the same length."""
    bits = results.choice.bits
    lines = [
        line for line in (_length_series(results, corpus, one) for one in results.variants) if line.points
    ]
    if max((len(line.points) for line in lines), default=0) < 2:
        return None
    drawn, outliers = without_outliers(lines)
    highlighted = (*OUR_METHODS, best_baseline(drawn))
    colors = {name: series_color(index) for index, name in enumerate(highlighted)}
    text = Text(
        corpus,
        f"Precision at 100 on {corpus} at {', '.join(map(str, bits))} bits, one line per method.",
        x_label="bits",
        y_label="precision@100",
        note="below: " + ", ".join(map(_range, outliers)) if outliers else "",
    )
    coloured = [replace(line, color=colors.get(line.name, BACKGROUND)) for line in drawn]
    return line_chart(text, coloured, categories=list(map(str, bits)))


def _length_series(results: TargetResults, corpus: str, variant: Variant) -> Series:
    points = [
        _point(results, corpus, bits, variant, x=index, name=f"{variant.label}, {bits} bits")
        for index, bits in enumerate(results.choice.bits)
    ]
    return Series(variant.label, [point for point in points if point is not None])


def _sweep_chart(results: TargetResults) -> Element:
    choice, parameter = results.choice, results.target.name
    categories = [
        f"{value:g}" + ("\ndefault" if "(default)" in variant.label else "")
        for value, variant in zip(choice.values, results.variants, strict=True)
    ]
    lines: list[Series] = []
    for corpus in choice.corpora:
        for bits in choice.bits:
            points = _sweep_points(results, corpus, bits)
            if len(points) > 1:
                name = corpus if len(choice.bits) == 1 else f"{corpus} {bits}"
                lines.append(Series(name, points, series_color(len(lines))))
    text = Text(
        f"{parameter}, {choice.methods[0]}, {', '.join(map(str, choice.bits))} bits",
        f"Precision at 100 by {parameter}, one line per corpus; the table has the values.",
        x_label=parameter,
        y_label="precision@100",
    )
    return line_chart(text, lines, categories=categories)


def _sweep_points(results: TargetResults, corpus: str, bits: int) -> list[Point]:
    points = [
        _point(results, corpus, bits, variant, x=index, name=f"{corpus}, {variant.label}")
        for index, variant in enumerate(results.variants)
    ]
    return [point for point in points if point is not None]


def _point(
    results: TargetResults, corpus: str, bits: int, variant: Variant, *, x: int, name: str
) -> Point | None:
    cell = results.aggregate.cell(corpus, bits, variant)
    return None if cell.mean is None else Point(x, cell.mean, cell.std or 0.0, tooltip=f"{name}: {cell}")


def _max(line: Series) -> float:
    return max(point.y for point in line.points)


def _range(line: Series) -> str:
    values = [point.y for point in line.points]
    low, high = (format_fraction(end, digits=2) for end in (min(values), max(values)))
    return f"{line.name} ({low} to {high})"
