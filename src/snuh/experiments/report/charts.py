"""Charts of the report, drawn with matplotlib, as inline SVG.

Colours are placeholders while matplotlib draws; in the SVG they become the variables of `page.css`, so charts
follow its light, dark and print colours.
"""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np
import numpy.typing as npt
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from scipy.optimize import isotonic_regression

from snuh.experiments.report.section import tag

SERIES_COLORS = ("one", "two", "three", "four", "five")
MAP_COLORS = tuple(f"hue{index}" for index in range(7))
CSS_VARIABLES = ("ink", "soft", "hair", "paper", "rest", "rest-line", *SERIES_COLORS, *MAP_COLORS)
PLACEHOLDERS = {name: f"#0000{index:02x}" for index, name in enumerate(CSS_VARIABLES, start=1)}

UNUSED = re.compile(
    r"<style.*?</style>|<clipPath.*?</clipPath>| clip-path=\"[^\"]*\"| xmlns(:xlink)?=\"[^\"]*\""
    r"|font-family: [^;\"]*;? ?| transform=\"rotate\(-0 [^\"]*\"",
    re.DOTALL,
)
GROUP_ID = re.compile(r"(?<=<g) id=\"(?!series-)[^\"]*\"")
COORDINATES = re.compile(r" (d|x|y|transform)=\"[^\"]*\"")

BACKGROUND = "rest"  # the colour of all other series
EMPHASIS = "ink"
MAP_MARKERS = ("o", "^", "s")
MAX_MAP_LABELS = len(MAP_COLORS) * len(MAP_MARKERS)  # with a distinct colour and shape

# Sizes are in pixels of the SVG, which are points to matplotlib.
MIN_WIDTH = 340
LEFT, BOTTOM, HEAD, RIGHT = 50, 50, 38, 14
MIN_LABEL_WIDTH = 72  # in place of the right margin
PLOT_HEIGHT = 212
Y_LABEL = 15  # from the left
LABEL_CHARACTER_WIDTH, LABEL_HEIGHT, LABEL_DISTANCE = 7, 11.5, 8
HEAD_CHARACTERS, HEAD_LINE_HEIGHT = 38, 13
INTERVAL_WIDTH, INTERVAL_MARGIN, INTERVAL_HEIGHT = 230, 16, 8
MAP_WIDTH, MAP_MARGIN = 560, 7
MIN_RANGE = 1e-6  # of values on an axis; smaller ones are equal up to rounding

RC_PARAMS = {
    "svg.fonttype": "none",
    "svg.hashsalt": "snuh",
    "text.parse_math": False,
    "axes.formatter.useoffset": False,
    "errorbar.capsize": 3,
    "font.size": 10.5,
    "axes.labelsize": 11,
    "text.color": PLACEHOLDERS["ink"],
    "axes.labelcolor": PLACEHOLDERS["ink"],
    "axes.edgecolor": PLACEHOLDERS["soft"],
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "grid.color": PLACEHOLDERS["hair"],
    "xtick.color": PLACEHOLDERS["soft"],
    "ytick.color": PLACEHOLDERS["soft"],
    "ytick.major.size": 0,
}
styled = style.context(RC_PARAMS, after_reset=True)

Ticks: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Point:
    """A value with its standard deviation and a tooltip."""

    x: float
    y: float
    std: float = 0.0
    tooltip: str = ""


@dataclass(frozen=True)
class Series:
    """Named points; `color` is one of SERIES_COLORS, or BACKGROUND."""

    name: str
    points: Sequence[Point]
    color: str = BACKGROUND
    is_dashed: bool = False


@dataclass(frozen=True)
class Text:
    """The texts of a chart; `description` is for screen readers, `note` stands below the title."""

    title: str
    description: str
    x_label: str
    y_label: str
    note: str = ""


@dataclass(frozen=True)
class Interval:
    """A mean with its confidence interval."""

    low: float
    mean: float
    high: float
    color: str


def series_color(index: int) -> str:
    """Return the colour of the first series, of the second and so on."""
    return SERIES_COLORS[index] if index < len(SERIES_COLORS) else BACKGROUND


@styled
def line_chart(
    text: Text, series: Sequence[Series], *, categories: Sequence[str] = (), is_log: bool = False
) -> Element:
    """Return lines with error bars, each labelled at its end.

    Args:
        text: of the chart.
        series: the lines.
        categories: labels of the x axis, whose values are then 0, 1, 2 and so on.
        is_log: whether both axes are logarithmic.
    """
    longest = max((len(line.name) for line in series), default=0)
    figure, axes = _axes(text, right=max(MIN_LABEL_WIDTH, 9 + LABEL_CHARACTER_WIDTH * longest))
    points = [point for line in series for point in line.points]
    if is_log:
        x_ticks, y_ticks = log_ticks([point.x for point in points]), log_ticks([point.y for point in points])
        axes.set(xscale="log", yscale="log", xlim=x_ticks[[0, -1]], ylim=y_ticks[[0, -1]])
        axes.minorticks_off()
        axes.set_xticks(x_ticks, [f"{tick:,.6g}" for tick in x_ticks])
        axes.set_yticks(y_ticks, [f"{tick:,.6g}" for tick in y_ticks])
    else:
        ticks = linear_ticks([point.y + sign * point.std for point in points for sign in (-1, 1)])
        axes.set(xlim=(-0.25, len(categories) - 0.75), ylim=ticks[[0, -1]], yticks=ticks)
        axes.set_xticks(range(len(categories)), categories)
    for index, line in enumerate(series):
        _draw_line(axes, line, gid=f"series-{index}")
    _label_ends(axes, series)
    return inline_svg(figure, text.title, text.description, css_class="chart", tooltips=_tooltips(series))


@styled
def scatter_chart(text: Text, series: Sequence[Series]) -> Element:
    """Return points without lines; later series are drawn above earlier ones."""
    figure, axes = _axes(text, right=RIGHT)
    points = [point for group in series for point in group.points]
    x_ticks = linear_ticks([point.x for point in points])
    y_ticks = linear_ticks([point.y for point in points])
    axes.set(xlim=x_ticks[[0, -1]], ylim=y_ticks[[0, -1]], xticks=x_ticks, yticks=y_ticks)
    for index, group in enumerate(series):
        _draw_points(axes, group, size=6.4, gid=f"series-{index}")
    return inline_svg(figure, text.title, text.description, css_class="chart", tooltips=_tooltips(series))


@styled
def interval_chart(title: str, description: str, intervals: Sequence[Interval], ticks: Ticks) -> Element:
    """Return intervals below each other, for a cell of a table; arrows mark ends beyond the ticks."""
    height = INTERVAL_HEIGHT * max(4, len(intervals)) + 4
    figure, axes = _interval_axes(height, ticks)
    axes.set_ylim(height, 0)
    axes.vlines(ticks, 0, height, colors=PLACEHOLDERS["hair"], linewidth=1)
    axes.axvline(0, color=PLACEHOLDERS["soft"], linewidth=1)
    low, high = ticks[0], ticks[-1]
    top = (height - INTERVAL_HEIGHT * len(intervals)) / 2
    for index, interval in enumerate(intervals):
        y, color = top + INTERVAL_HEIGHT * (index + 0.5), PLACEHOLDERS[interval.color]
        width = 3 if interval.color == EMPHASIS else 2
        start, end = np.clip([interval.low, interval.high], low, high)
        axes.hlines(y, start, end, color, linewidth=width)
        marks = [("<", low, interval.low < low), (">", high, interval.high > high)]
        marks.append(("o", interval.mean, low <= interval.mean <= high))
        for marker, x, is_shown in marks:
            if is_shown:
                axes.plot(x, y, marker, color=color, markersize=6.4, markeredgewidth=0)
    return inline_svg(figure, title, description, css_class="intervals")


@styled
def interval_axis(ticks: Ticks, labels: Sequence[str]) -> Element:
    """Return the tick labels of interval charts, for the head of their column."""
    figure, axes = _interval_axes(14, ticks)
    for tick, label in zip(ticks, labels, strict=True):
        axes.text(tick, 0.2, label, ha="center", color=PLACEHOLDERS["soft"])
    title, description = "difference of precision", "The axis of the charts below."
    return inline_svg(figure, title, description, css_class="intervals")


@styled
def map_chart(
    title: str,
    description: str,
    groups: Mapping[int, Sequence[Sequence[int]]],
    *,
    size: int,
    min_numbered: int,
) -> Element:
    """Return a map of (x, y) points, grouped by the rank of their label.

    A label with a marker of its own is numbered at the median of its points, given at least `min_numbered`.
    """
    figure = Figure(figsize=(MAP_WIDTH / 72, MAP_WIDTH / 72))
    margin = MAP_MARGIN * size / (MAP_WIDTH - 2 * MAP_MARGIN)
    limits = (-margin, size + margin)
    axes = figure.add_axes((0, 0, 1, 1), xlim=limits, ylim=limits[::-1])
    axes.set_axis_off()
    for rank in sorted(groups, reverse=True):  # the grey ones first, as the background
        color, marker = map_marker(rank)
        x, y = zip(*groups[rank], strict=True)
        axes.plot(x, y, marker, color=PLACEHOLDERS[color], markersize=4, markeredgewidth=0, alpha=0.75)
    for rank, points in groups.items():
        if rank < MAX_MAP_LABELS and len(points) >= min_numbered:
            x, y = np.median(np.asarray(points), axis=0)
            axes.text(x, y, str(rank + 1), ha="center", va="center", fontsize=16, fontweight="bold")
    return inline_svg(figure, title, description, css_class="map")


def map_marker(rank: int) -> tuple[str, str]:
    """Return the colour and the matplotlib marker of a label."""
    if rank >= MAX_MAP_LABELS:
        return "rest-line", MAP_MARKERS[-1]
    return MAP_COLORS[rank % len(MAP_COLORS)], MAP_MARKERS[rank // len(MAP_COLORS)]


def linear_ticks(values: Sequence[float], *, limit: int = 5) -> Ticks:
    """Return round ticks around the values, in at most `limit` steps."""
    low, high = min(values), max(values)
    if high - low < MIN_RANGE:
        low, high = low - 0.1, high + 0.1
    return np.round(MaxNLocator(limit, steps=[1, 2, 5, 10]).tick_values(low, high), 10)


def log_ticks(values: Sequence[float]) -> Ticks:
    """Return the ticks 1, 3, 10, 30 and so on around positive values."""
    ticks = np.array([factor * 10.0**power for power in range(-4, 9) for factor in (1, 3)])
    first = max(0, int(np.searchsorted(ticks, min(values), side="right")) - 1)
    last = max(first + 1, int(np.searchsorted(ticks, max(values))))
    return ticks[first : last + 1]


def spread(positions: Sequence[float], *, gap: float, high: float) -> list[float]:
    """Move positions as little as possible so that they keep their order and are `gap` apart in [0, high].

    If there are too many for that, they are evenly spaced.
    """
    if not positions:
        return []
    count = len(positions)
    offsets = min(gap, high / max(1, count - 1)) * np.arange(count)
    order = np.argsort(positions, kind="stable")
    # Less the offsets, the gaps only ask for an increasing sequence: an isotonic regression.
    increasing = isotonic_regression(np.asarray(positions, dtype=float)[order] - offsets).x
    moved = np.empty(count)
    moved[order] = np.clip(increasing, 0, high - offsets[-1]) + offsets
    return [float(position) for position in moved]


def _axes(text: Text, *, right: float) -> tuple[Figure, Axes]:
    """Return empty axes with their texts; a long title or note makes the figure higher."""
    titles = textwrap.wrap(text.title, HEAD_CHARACTERS)
    notes = textwrap.wrap(text.note, HEAD_CHARACTERS)
    head = max(HEAD, 12 + HEAD_LINE_HEIGHT * (len(titles) + len(notes)))
    plot_width = MIN_WIDTH - LEFT - min(right, MIN_LABEL_WIDTH)
    width, height = LEFT + plot_width + right, head + PLOT_HEIGHT + BOTTOM
    figure = Figure(figsize=(width / 72, height / 72))
    for index, line in enumerate([*titles, *notes]):
        is_title = index < len(titles)
        figure.text(
            LEFT / width,
            1 - (12 + HEAD_LINE_HEIGHT * index) / height,
            line,
            color=PLACEHOLDERS["ink" if is_title else "soft"],
            fontsize=12 if is_title else 10.5,
            fontweight="bold" if is_title else "normal",
        )
    rectangle = (LEFT / width, BOTTOM / height, plot_width / width, PLOT_HEIGHT / height)
    axes = figure.add_axes(rectangle, xlabel=text.x_label, ylabel=text.y_label)
    axes.yaxis.set_label_coords((Y_LABEL - LEFT) / plot_width, 0.5)
    return figure, axes


def _interval_axes(height: float, ticks: Ticks) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(INTERVAL_WIDTH / 72, height / 72))
    margin = INTERVAL_MARGIN / INTERVAL_WIDTH
    axes = figure.add_axes((margin, 0, 1 - 2 * margin, 1), xlim=ticks[[0, -1]])
    axes.set_axis_off()
    return figure, axes


def _draw_line(axes: Axes, line: Series, *, gid: str) -> None:
    is_background = line.color == BACKGROUND
    color = PLACEHOLDERS["rest-line" if is_background else line.color]
    width, zorder = (1.2, 2) if is_background else (2, 3)
    x, y = [point.x for point in line.points], [point.y for point in line.points]
    axes.plot(x, y, "--" if line.is_dashed else "-", color=color, linewidth=width, zorder=zorder)
    if bars := [point for point in line.points if point.std]:
        x, y, std = ([getattr(point, name) for point in bars] for name in ("x", "y", "std"))
        axes.errorbar(x, y, std, fmt="none", ecolor=color, elinewidth=1.2, zorder=zorder)
    _draw_points(axes, line, size=5.2, gid=gid, zorder=zorder + 0.5)


def _draw_points(axes: Axes, series: Series, *, size: float, gid: str, zorder: float = 3) -> None:
    is_background = series.color == BACKGROUND
    axes.plot(
        [point.x for point in series.points],
        [point.y for point in series.points],
        "o",
        markersize=size,
        markerfacecolor=PLACEHOLDERS["paper" if is_background else series.color],
        markeredgecolor=PLACEHOLDERS[series.color],
        markeredgewidth=1 if is_background else 0,
        gid=gid,
        zorder=zorder,
    )


def _label_ends(axes: Axes, series: Sequence[Series]) -> None:
    """Write the name of each line at its end, without overlaps."""
    ends = [(line.points[-1].x, line.points[-1].y) for line in series]
    plot_width = MIN_WIDTH - LEFT - MIN_LABEL_WIDTH
    to_axes = axes.transData + axes.transAxes.inverted()
    heights = [float(to_axes.transform(end)[1]) * PLOT_HEIGHT for end in ends]
    for line, end, y in zip(series, ends, spread(heights, gap=LABEL_HEIGHT, high=PLOT_HEIGHT), strict=True):
        color = PLACEHOLDERS[line.color]
        leader = {"arrowstyle": "-", "color": color, "linestyle": (0, (2, 2)), "linewidth": 0.7}
        axes.annotate(
            line.name,
            end,
            (1 + LABEL_DISTANCE / plot_width, y / PLOT_HEIGHT),
            textcoords="axes fraction",
            va="center",
            color=color,
            fontweight="normal" if line.color == BACKGROUND else "bold",
            arrowprops=leader | {"relpos": (0, 0.5), "shrinkA": 1, "shrinkB": 4},
        )


def _tooltips(series: Sequence[Series]) -> dict[str, list[str]]:
    return {f"series-{index}": [point.tooltip for point in one.points] for index, one in enumerate(series)}


def inline_svg(
    figure: Figure,
    title: str,
    description: str,
    *,
    css_class: str,
    tooltips: Mapping[str, Sequence[str]] | None = None,
) -> Element:
    """Return a figure as an element of the page.

    Args:
        figure: to draw, with colours from PLACEHOLDERS.
        title: of the chart, for screen readers.
        description: of what it shows, for screen readers.
        css_class: of the element.
        tooltips: of the markers, by the group id (`gid`) of their artist, which starts with "series-".
    """
    file = io.StringIO()
    metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(file, format="svg", transparent=True, metadata=metadata)
    drawn = ElementTree.fromstring(_simplify(file.getvalue()))
    for group, texts in (tooltips or {}).items():
        _add_tooltips(drawn, group, texts)
    for group_element in drawn.iter("g"):
        group_element.attrib.pop("id", None)
        _hoist_style(group_element)
    names = tag("title", title), tag("desc", description)
    return tag("svg", *names, *drawn, viewBox=drawn.attrib["viewBox"], role="img", class_=css_class)


def make_ids_unique(page: Element) -> None:
    """Number the ids of markers by chart, as ids must be unique within a page."""
    for index, chart in enumerate(page.iter("svg")):
        for element in chart.iter():
            if "id" in element.attrib:
                element.set("id", f"{element.attrib['id']}-{index}")
            if "href" in element.attrib:
                element.set("href", f"{element.attrib['href']}-{index}")


def _simplify(source: str) -> str:
    """Drop what a page does not need, and use its colours."""
    source = source[source.index("<svg") :]
    source = GROUP_ID.sub("", UNUSED.sub("", source))
    source = COORDINATES.sub(lambda attribute: _round_numbers(attribute[0]), source)
    source = re.sub(r">\s+<", "><", source).replace("\n", "")
    for name, placeholder in PLACEHOLDERS.items():
        source = source.replace(placeholder, f"var(--{name})")
    return source.replace("xlink:href", "href")


def _round_numbers(text: str) -> str:
    return re.sub(r"\d+\.\d+", lambda number: f"{float(number[0]):.1f}".removesuffix(".0"), text)


def _add_tooltips(drawn: Element, group: str, texts: Sequence[str]) -> None:
    for marker, text in zip(drawn.iterfind(f".//g[@id='{group}']//use"), texts, strict=True):
        if text:
            marker.append(tag("title", text))


def _hoist_style(group: Element) -> None:
    """Move the style that all markers of a group share to the group: a map has thousands of them."""
    styles = {child.get("style") for child in group if child.tag == "use"}
    if len(styles) == 1 and all(child.tag == "use" for child in group):
        group.set("style", str(styles.pop()))
        for child in group:
            del child.attrib["style"]
