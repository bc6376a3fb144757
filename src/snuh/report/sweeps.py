"""One parameter at many values: a plot with a line for each corpus, and its table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from xml.etree.ElementTree import Element

from snuh.experiments.run import Row, Select
from snuh.experiments.sweep import variants_beside
from snuh.experiments.target import Target
from snuh.experiments.targets import SWEEPS
from snuh.methods.sizes import resolve_for_large_corpus
from snuh.report.chart import Axis, Chart, Line, Point, style_of
from snuh.report.choices import Held, held, in_order
from snuh.report.grid import figures_table
from snuh.report.scales import linear, steps
from snuh.report.section import Section, figures, paragraphs, repeat


def sweeps(rows: Sequence[Row], select: Select) -> Section | None:
    """Return the sweeps of which a corpus has at least two values, those of snuh first."""
    plots, tables, texts, commands, measure = [], [], [], [], ""
    methods = in_order(("snuh",), (row["method"] for row in rows))
    for method in methods:
        for target in SWEEPS:
            part = swept(target, method, rows, select)
            if part is None:
                continue
            (printed,) = part.printed.tables
            plots.append(_plot(part))
            tables.append(figures_table(f"{target.name} of {method}", printed))
            texts.append(printed.markdown())
            measure = "\n".join(part.printed.about.splitlines()[:2])  # and what is bold: alike for all
            commands.append(target.name + ("" if method == "snuh" else f" --method {method}"))
    if not plots:
        return None
    elements = [*paragraphs(measure), repeat(select, *commands), figures(*plots), *tables]
    return Section("sweeps", "Sweeps: one parameter at many values", elements, "\n\n".join([measure, *texts]))


def swept(target: Target, method: str, rows: Sequence[Row], select: Select) -> Held | None:
    """Return what the rows hold of a sweep, on the corpora that have at least two values."""
    defaults = known_defaults(method, rows)
    if target.name not in defaults:
        return None
    choice = replace(target.usual, methods=(method,), select=select)
    found = held(target, choice, variants_beside(defaults, target.name, choice), rows)
    if found is None:
        return None
    corpora = tuple(
        corpus
        for corpus in found.choice.corpora
        if any(len(_points(found, corpus, n)) > 1 for n in found.choice.bits)
    )
    return replace(found, choice=replace(found.choice, corpora=corpora)) if corpora else None


def known_defaults(method: str, rows: Sequence[Row]) -> dict[str, Any]:
    """Return the parameters as rows have them that were not given them; None where every row was."""
    defaults: dict[str, Any] = {}
    for row in rows:
        if row["method"] == method:
            for name, value in resolve_for_large_corpus(row.get("all_parameters") or {}).items():
                known = defaults.setdefault(name, None)
                defaults[name] = known if name in row["parameters"] else value
    return defaults


def _plot(part: Held) -> Element:
    choice, name = part.choice, part.target.name
    texts = [f"{value:g}" for value in choice.values]
    also = ["default" if "(default)" in variant.label else "" for variant in part.variants]
    lines: list[Line] = []
    for corpus in choice.corpora:
        for bits in choice.bits:
            points = _points(part, corpus, bits)
            if len(points) > 1:
                label = corpus if len(choice.bits) == 1 else f"{corpus} {bits}"
                lines.append(Line(label, points, style_of(len(lines))))
    ends = [point.y + side * point.spread for line in lines for point in line.points for side in (-1, 1)]
    lengths = ", ".join(map(str, choice.bits))
    title = f"{name}, {choice.methods[0]}, {lengths} bits"
    about = f"Precision at 100 against {name}, a line for each corpus; the figures are in the table."
    chart = Chart(
        title, about, Axis(steps(texts, also), name), Axis(linear(ends), "precision@100"), has_names=True
    )
    chart.add_lines(lines)
    return chart.element


def _points(part: Held, corpus: str, bits: int) -> list[Point]:
    points = []
    for place, variant in enumerate(part.variants):
        cell = part.figures.cell(corpus, bits, variant)
        if cell.mean is not None:
            note = f"{corpus}, {variant.label}: {cell.shown}{cell.rest}"
            points.append(Point(place, cell.mean, cell.deviation or 0.0, note))
    return points
