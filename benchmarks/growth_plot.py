"""Plot CPU seconds over documents on logarithmic axes, one line per stage with its exponent."""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import tostring

from snuh.report.chart import REST, STYLES, Axis, Chart, Line, Point, style_of
from snuh.report.scales import Scale, Tick, logarithmic
from snuh.report.tags import tag

COLOURS = ("#1b6ca8", "#c2410c", "#15803d", "#7e22ce", "#b45309")
LOOKS = (
    "svg{font:10px sans-serif;background:#fff}.rule{stroke:#ddd}.axis{stroke:#555}.end{text-anchor:end}"
    ".middle{text-anchor:middle}.title{font-weight:bold}.line{fill:none;stroke-width:1.5}"
    ".leader{fill:none;stroke-width:.5}.dashed{stroke-dasharray:3 2}"
)


def draw(stages: dict[str, Any]) -> str:
    """Return the plot as SVG; the stages with the largest exponents are coloured."""
    ranked = sorted(stages, key=lambda stage: -stages[stage]["exponent"])
    points = {
        stage: [Point(one["documents"], max(one["cpu_seconds"], 1e-3)) for one in found["by_documents"]]
        for stage, found in stages.items()
    }
    sizes = [point.x for point in points[ranked[0]]]
    ticks = [Tick(size, f"{size / 1000:g}k") for size in sizes]
    across = Axis(Scale(sizes[0], sizes[-1], ticks, is_log=True), "documents")
    up = Axis(logarithmic(point.y for line in points.values() for point in line), "CPU seconds")
    chart = Chart(
        "Growth of each stage", "CPU seconds of each stage by documents", across, up, has_names=True
    )
    chart.add_lines(
        [
            Line(f"{stage} {stages[stage]['exponent']:.2f}", points[stage], style_of(ranked.index(stage)))
            for stage in stages
        ]
    )
    styles = zip((*STYLES, REST), (*COLOURS, "#777"), strict=True)
    colours = "".join(
        f".{name}.line,.{name}.leader{{stroke:{colour}}}.{name}.dot,.{name}.name{{fill:{colour}}}"
        for name, colour in styles
    )
    chart.element.insert(0, tag("style", LOOKS + colours))
    chart.element.set("xmlns", "http://www.w3.org/2000/svg")
    return tostring(chart.element, encoding="unicode")
