"""What training costs: time and memory against documents, and the table of both methods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from xml.etree.ElementTree import Element

from snuh.experiments.efficiency import EFFICIENCY, Cost, costs
from snuh.experiments.run import Row, Select
from snuh.report.chart import Axis, Chart, Line, Point, style_of
from snuh.report.choices import Held, of_methods
from snuh.report.grid import figures_table
from snuh.report.scales import logarithmic
from snuh.report.section import Section, figures, paragraphs, repeat

MEASURES: dict[str, Callable[[Cost], float]] = {
    "seconds an epoch": lambda cost: cost.epoch_seconds,
    "seconds of the fit": lambda cost: cost.fit_seconds,
    "megabytes at most": lambda cost: cost.megabytes,
}


def efficiency(rows: Sequence[Row], select: Select) -> Section | None:
    """Return plots against the number of documents, and the table."""
    held = of_methods(EFFICIENCY, rows, select)
    if held is None:
        return None
    (printed,) = held.printed.tables
    if not printed.lines:
        return None
    plots = [_plot(held, measure) for measure in MEASURES]
    first, *others = held.choice.methods
    also = f"Full lines are {first}" + "".join(f", dashed ones {other}" for other in others)
    elements = [
        *paragraphs(f"{held.printed.about}\n\n{also}; both axes are logarithmic."),
        repeat(select, "efficiency"),
        figures(*plots),
        figures_table("Seconds and memory of training", printed),
    ]
    return Section("efficiency", "Efficiency: seconds and memory", elements, held.printed.markdown())


def _plot(held: Held, measure: str) -> Element:
    lines = _lines(held, MEASURES[measure])
    points = [point for line in lines for point in line.points]
    chart = Chart(
        measure,
        f"{measure} against the documents to train on, a line for each corpus and method.",
        Axis(logarithmic(point.x for point in points), "documents"),
        Axis(logarithmic(point.y for point in points), ""),  # the title says it
        has_names=True,
    )
    chart.add_lines(lines)
    return chart.element


def _lines(held: Held, value: Callable[[Cost], float]) -> list[Line]:
    lines = []
    for place, corpus in enumerate(held.choice.corpora):
        style = style_of(place)
        for bits in held.choice.bits:
            found = costs(held.choice, corpus, bits, held.rows)
            for number, method in enumerate(held.choice.methods):
                points = [
                    Point(
                        documents,
                        value(of_methods[number]),
                        note=f"{corpus}, {method}, {documents:,} documents",
                    )
                    for documents, of_methods in sorted(found.items())
                    if value(of_methods[number]) > 0
                ]
                if points:
                    length = f" {bits}" if len(held.choice.bits) > 1 else ""
                    lines.append(Line(f"{corpus}{length} {method}", points, style, is_dashed=number > 0))
    return lines
