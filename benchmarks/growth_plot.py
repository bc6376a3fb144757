"""The chart of growth: CPU seconds by documents, both logarithmic, one line per stage with its exponent."""

from __future__ import annotations

from importlib.resources import files
from typing import Any
from xml.etree.ElementTree import tostring

from snuh.experiments.report.charts import Point, Series, Text, line_chart, series_color
from snuh.experiments.report.section import tag


def draw(stages: dict[str, Any]) -> str:
    """Return the chart as an SVG file; the stages that grow fastest are in colour."""
    ranked = sorted(stages, key=lambda stage: -stages[stage]["exponent"])
    series = [
        Series(
            f"{stage} {found['exponent']:.2f}",
            [Point(one["documents"], max(one["cpu_seconds"], 1e-3)) for one in found["by_documents"]],
            series_color(ranked.index(stage)),
        )
        for stage, found in stages.items()
    ]
    text = Text("Growth of each stage", "CPU seconds of each stage by documents", "documents", "CPU seconds")
    chart = line_chart(text, series, is_log=True)
    light_colors, _, _ = files("snuh.experiments.report").joinpath("page.css").read_text().partition("}")
    looks = light_colors + "} svg { background: var(--paper); } text { font-family: sans-serif; }"
    chart.insert(0, tag("style", looks.replace("color-scheme: light dark;", "")))
    chart.set("xmlns", "http://www.w3.org/2000/svg")
    return tostring(chart, encoding="unicode") + "\n"
