"""Charts: values are drawn where they belong, labels do not overlap, and the SVG fits into the page."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree.ElementTree import Element

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snuh.experiments.report.charts import (
    HEAD,
    LEFT,
    MAX_MAP_LABELS,
    PLOT_HEIGHT,
    Interval,
    Point,
    Series,
    Text,
    interval_chart,
    line_chart,
    linear_ticks,
    log_ticks,
    scatter_chart,
    spread,
)
from snuh.experiments.report.figures import rank_labels
from snuh.experiments.report.precision import best_baseline, known_defaults, without_outliers
from snuh.experiments.report.section import serialize
from tests.experiments.report.worlds import DEFAULTS, costed, mapped, page_of, scored, swept

TEXT = Text("title", "description", "x", "y")


def series(name: str, *values: float, color: str = "rest") -> Series:
    return Series(name, [Point(index, value) for index, value in enumerate(values)], color)


def draw(*lines: Series) -> Element:
    return line_chart(TEXT, lines, categories=["16", "32"])


def texts(chart: Element) -> dict[str, Element]:
    """Return the text elements by their content."""
    return {text.text or "": text for text in chart.iter("text")}


@given(st.lists(st.floats(0, 100), max_size=20), st.floats(0.1, 20))
def test_spread_positions_keep_their_order_their_distance_and_their_bounds(
    positions: list[float], gap: float
) -> None:
    moved = spread(positions, gap=gap, high=100)
    least = min(gap, 100 / max(1, len(positions) - 1))
    ordered = [moved[one] for one in sorted(range(len(positions)), key=lambda one: positions[one])]
    assert all(after - before > least - 1e-6 for before, after in pairwise(ordered))
    assert all(-1e-6 <= position <= 100 + 1e-6 for position in moved)


def test_labels_that_do_not_touch_stay_where_they_are() -> None:
    assert spread([50, 10, 30], gap=12, high=100) == [50, 10, 30]
    assert spread([50, 52], gap=12, high=100) == [45, 57]


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=9))
def test_linear_ticks_enclose_the_values(values: list[float]) -> None:
    ticks = linear_ticks(values)
    assert ticks[0] - 1e-6 <= min(values) and max(values) <= ticks[-1] + 1e-6
    assert 2 <= len(ticks) <= 8 and ticks[0] < ticks[-1]


def test_ticks_are_round() -> None:
    assert linear_ticks([0.56, 0.74]).tolist() == [0.55, 0.6, 0.65, 0.7, 0.75]
    assert log_ticks([1_000, 25_000]).tolist() == [1_000, 3_000, 10_000, 30_000]
    assert len(log_ticks([7.0])) == 2


def test_points_are_drawn_at_their_values_and_bars_at_their_deviation() -> None:
    chart = line_chart(TEXT, [Series("m", [Point(0, 0.0), Point(1, 0.5, std=0.5)])], categories=["16", "32"])
    dots = [float(use.attrib["y"]) for use in chart.iter("use") if float(use.attrib["x"]) > LEFT]
    bottom, middle = HEAD + PLOT_HEIGHT, HEAD + PLOT_HEIGHT / 2
    assert {bottom, middle} <= set(dots)
    paths = [path.attrib["d"] for path in chart.iter("path")]
    assert any(re.fullmatch(rf"M (\S+) {bottom} L \1 {HEAD} ", path) for path in paths), paths


def test_points_have_tooltips() -> None:
    chart = scatter_chart(TEXT, [Series("", [Point(0, 0, tooltip="a <run>"), Point(1, 1)])])
    titles = [title.text for use in chart.iter("use") for title in use.iter("title")]
    assert titles == ["a <run>"]
    assert "<title>a &lt;run&gt;</title>" in serialize(chart)


def test_colours_are_those_of_the_page() -> None:
    text = serialize(draw(series("a", 0.5, 0.6, color="one"), series("b", 0.4, 0.5)))
    assert {"var(--one)", "var(--rest)", "var(--paper)", "var(--ink)"} <= set(re.findall(r"var\(.*?\)", text))
    assert not re.search(r": #|font-family", text)


def test_the_labels_of_sixteen_lines_do_not_overlap() -> None:
    chart = draw(*(series(f"method{index}", 0.5, 0.6 + index / 10_000) for index in range(16)))
    heights = sorted(float(text.attrib["y"]) for name, text in texts(chart).items() if "method" in name)
    assert len(heights) == 16
    assert all(after - before > 10 for before, after in pairwise(heights))


@settings(deadline=None, max_examples=20)
@given(st.text("abc -", max_size=200), st.text("abc -", max_size=200))
def test_a_title_and_a_note_of_any_length_stay_above_the_plot(title: str, note: str) -> None:
    text = Text(title, "description", "x label", "y label", note=note)
    chart = scatter_chart(text, [Series("", [Point(0, 0)])])
    _, _, width, height = map(float, chart.attrib["viewBox"].split())
    left = [one for one in chart.iter("text") if float(one.attrib["x"]) == LEFT]
    head = [(one.text or "", float(one.attrib["y"])) for one in left if "middle" not in one.attrib["style"]]
    assert "".join(line for line, _ in head).replace(" ", "") == (title + note).replace(" ", "")
    assert all(LEFT + 7.5 * len(line) < width for line, _ in head)  # 12 px, bold
    assert all(12 <= y < height - PLOT_HEIGHT for _, y in head)
    assert all(after - before > 12 for (_, before), (_, after) in pairwise(head))


def test_a_long_name_of_a_line_widens_the_chart() -> None:
    widths = []
    for name in ("itq", "arxiv100k vdsh", "a name of twice as many letters"):
        chart = draw(series(name, 0.5, 0.6))
        widths.append(float(chart.attrib["viewBox"].split()[2]))
        assert float(texts(chart)[name].attrib["x"]) + 7 * len(name) <= widths[-1]
    assert widths[0] < widths[1] < widths[2]


def test_intervals_end_within_the_axis() -> None:
    ticks = np.array([-0.1, 0.0, 0.1])
    inside, cut = Interval(-0.05, 0, 0.05, "one"), Interval(-9, 0, 9, "two")
    beyond = Interval(8, 8.5, 9, "ink")
    chart = interval_chart("t", "d", [inside, cut, beyond], ticks)
    xs = [float(use.attrib["x"]) for use in chart.iter("use")]
    assert len(xs) == 1 + 3 + 1  # a dot; a dot and two arrows; an arrow
    assert all(0 < x < 230 for x in xs)


def test_a_chart_of_a_score_has_its_correlation_below_its_title() -> None:
    text = page_of(scored())
    assert re.search(r">agnews, 64 bits</text>.*?>rank correlation 1.00, 5 runs</text>", text)


def test_lines_of_costs_are_named_by_corpus_and_method() -> None:
    rows = costed() + [row | {"corpus": "tmc"} for row in costed()]
    names = re.findall(r">((?:ng20|tmc)[ \d]* (?:snuh|vdsh))</text>", page_of(rows))
    assert names == ["ng20 snuh", "ng20 vdsh", "tmc snuh", "tmc vdsh"] * 3
    longer = [row | {"bits": 128} for row in rows]
    names = re.findall(r">((?:ng20|tmc)[ \d]* (?:snuh|vdsh))</text>", page_of(rows + longer))
    assert len(set(names)) == len(names) / 3


def test_a_line_far_below_the_others_is_named_and_not_drawn() -> None:
    lines = [series("a", 0.6, 0.7), series("b", 0.65, 0.68), series("lsh", 0.1, 0.2)]
    drawn, outliers = without_outliers(lines)
    assert [one.name for one in outliers] == ["lsh"] and {one.name for one in drawn} == {"a", "b"}
    assert without_outliers(lines[:2]) == (sorted(lines[:2], key=lambda one: one.points[1].y), [])


def test_the_best_baseline_is_judged_at_the_lengths_that_it_has() -> None:
    short = series("short", 0.6)  # the best at the one length that it has
    assert best_baseline([series("snuh", 0.9, 0.9), series("long", 0.5, 0.8), short]) == "short"


def test_the_rarest_of_many_labels_have_no_marker_of_their_own() -> None:
    assert list(rank_labels(mapped(labels=3))) == ["label 0", "label 1", "label 2"]
    text = page_of(mapped(labels=MAX_MAP_LABELS + 5))
    assert "5 other labels" in text and text.count("<li><span") == MAX_MAP_LABELS + 1


def test_a_map_has_a_marker_for_each_document() -> None:
    assert page_of(mapped()).count("<use ") == 2 * 60


def test_defaults_are_what_rows_have_that_were_not_given_a_parameter() -> None:
    assert known_defaults("snuh", swept()) == DEFAULTS
    given = [row for row in swept() if row["parameters"].get("trees")]
    assert known_defaults("snuh", given)["trees"] is None
    assert known_defaults("vdsh", swept()) == {}


@pytest.mark.parametrize("name", ["a$b$c", "x_1^2"])
def test_names_are_not_taken_for_formulas(name: str) -> None:
    assert name in texts(draw(series(name, 0.5, 0.6)))
