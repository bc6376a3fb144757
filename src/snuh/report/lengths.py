"""Precision against the length of the codes, a plot for each corpus."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace
from xml.etree.ElementTree import Element

from snuh.experiments.cells import number
from snuh.report.chart import REST, STYLES, Axis, Chart, Line, Point
from snuh.report.choices import Held
from snuh.report.scales import linear, steps

OURS = ("snuh-plus", "snuh")
FAR = 0.7  # of the others' range: what lies further below them is named, and not drawn

ABOUT = (
    "Means over the seeds; bars are one standard deviation to each side, where there are two seeds or more. "
    "In colour: snuh-plus, snuh, and the strongest of the others at the lengths that it has."
)


def length_plot(held: Held, corpus: str) -> Element | None:
    """Return the plot of a corpus; None where it has runs of one length only."""
    choice = held.choice
    lines = [line for line in (_line(held, corpus, method) for method in choice.methods) if line]
    if max((len(line.points) for line in lines), default=0) < 2:
        return None
    drawn, below = without_far(lines)
    styles = dict(zip((*OURS, strongest(drawn)), STYLES, strict=False))
    drawn = [replace(line, style=styles.get(line.name, REST)) for line in drawn]
    ends = [point.y + side * point.spread for line in drawn for point in line.points for side in (-1, 1)]
    about = (
        f"Precision at 100 on {corpus} at {', '.join(map(str, choice.bits))} bits, a line for each method."
    )
    chart = Chart(
        corpus,
        about,
        Axis(steps([str(bits) for bits in choice.bits]), "bits"),
        Axis(linear(ends), "precision@100"),
        has_names=True,
        note="below: " + ", ".join(_range(line) for line in below) if below else "",
    )
    chart.add_lines(drawn)
    return chart.element


def without_far(lines: Sequence[Line]) -> tuple[list[Line], list[Line]]:
    """Part the lines from those so far below them that the others would be pressed together."""
    kept, below = sorted(lines, key=_highest), []
    while len(kept) > 2:
        values = [point.y for line in kept[1:] for point in line.points]
        if min(values) - _highest(kept[0]) <= FAR * (max(values) - min(values)):
            break
        below.append(kept.pop(0))
    return kept, below


def strongest(lines: Sequence[Line]) -> str:
    """Return the method that is best, beside ours, by its gap to the mean of all at the same lengths."""
    values: dict[float, list[float]] = {}
    for line in lines:
        for point in line.points:
            values.setdefault(point.x, []).append(point.y)
    means = {x: statistics.mean(found) for x, found in values.items()}
    gaps = {
        line.name: statistics.mean(point.y - means[point.x] for point in line.points)
        for line in lines
        if line.name not in OURS
    }
    return max(gaps, key=lambda name: gaps[name], default="")


def _line(held: Held, corpus: str, method: str) -> Line | None:
    variant = next(one for one in held.variants if one.label == method)
    points = []
    for place, bits in enumerate(held.choice.bits):
        cell = held.figures.cell(corpus, bits, variant)
        if cell.mean is not None:
            note = f"{method}, {bits} bits: {cell.shown}{cell.rest}"
            points.append(Point(place, cell.mean, cell.deviation or 0.0, note))
    return Line(method, points, REST) if points else None


def _highest(line: Line) -> float:
    return max(point.y for point in line.points)


def _range(line: Line) -> str:
    values = [point.y for point in line.points]
    return f"{line.name} ({number(min(values), digits=2)} to {number(max(values), digits=2)})"
