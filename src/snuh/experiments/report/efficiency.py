"""Section on the cost of training: time and memory by the number of documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from xml.etree.ElementTree import Element

from snuh.experiments.efficiency import EFFICIENCY, Cost, costs
from snuh.experiments.report.charts import Point, Series, Text, line_chart, series_color
from snuh.experiments.report.html import results_table
from snuh.experiments.report.section import (
    Section,
    TargetResults,
    find_results,
    panels,
    paragraphs,
    reproduce_hint,
)
from snuh.experiments.run import Row, Select

METRICS: dict[str, Callable[[Cost], float]] = {
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
        panels(*(_chart(results, metric) for metric in METRICS)),
        results_table("Seconds and memory of training", table),
    ]
    return Section("efficiency", "Efficiency: seconds and memory", elements, results.output.markdown())


def _chart(results: TargetResults, metric: str) -> Element:
    text = Text(
        metric,
        f"{metric} by the number of training documents, one line per corpus and method.",
        x_label="documents",
        y_label=metric,
    )
    return line_chart(text, _series(results, METRICS[metric]), is_log=True)


def _series(results: TargetResults, metric: Callable[[Cost], float]) -> list[Series]:
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
