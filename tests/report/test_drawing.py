"""What is drawn stands where its value says, is named once, and nothing lies upon something else."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree.ElementTree import Element

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snuh.experiments.cells import Table
from snuh.report.chart import BOTTOM, HEIGHT, LEFT, TOP, WIDTH, Axis, Chart, Line, Point
from snuh.report.lengths import strongest, without_far
from snuh.report.maps import ranked
from snuh.report.marks import MARKS
from snuh.report.scales import linear, logarithmic, steps
from snuh.report.spreading import spread
from snuh.report.sweeps import known_defaults
from tests.report.worlds import DEFAULTS, costed, mapped, page_of, scored, swept


def draw(*lines: Line) -> Element:
    values = [point.y for line in lines for point in line.points]
    chart = Chart("t", "a", Axis(steps(["16", "32"]), "bits"), Axis(linear(values), "y"), has_names=True)
    chart.add_lines(lines)
    return chart.element


def line(name: str, *values: float) -> Line:
    return Line(name, [Point(place, value) for place, value in enumerate(values)], "rest")


@given(st.lists(st.floats(0, 100), max_size=20), st.floats(0.1, 20))
def test_spread_labels_keep_their_order_their_distance_and_their_bounds(
    places: list[float], gap: float
) -> None:
    moved = spread(places, gap=gap, low=0, high=100)
    least = min(gap, 100 / max(1, len(places) - 1))
    ordered = [moved[one] for one in sorted(range(len(places)), key=lambda one: places[one])]
    assert all(after - before > least - 1e-6 for before, after in pairwise(ordered))
    assert all(-1e-6 <= place <= 100 + 1e-6 for place in moved)


def test_labels_that_do_not_touch_stay_where_they_are() -> None:
    assert spread([50, 10, 30], gap=12, low=0, high=100) == [50, 10, 30]
    assert spread([50, 52], gap=12, low=0, high=100) == [45, 57]


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=9))
def test_a_linear_axis_holds_its_values(values: list[float]) -> None:
    scale = linear(values)
    assert all(-1e-6 <= scale.place(value) <= 1 + 1e-6 for value in values)
    assert 2 <= len(scale.ticks) <= 8


def test_ticks_are_round_and_written_briefly() -> None:
    assert [tick.text for tick in linear([0.56, 0.74]).ticks] == [".55", ".60", ".65", ".70", ".75"]
    assert [tick.text for tick in logarithmic([1_000, 25_000]).ticks] == [
        "1,000",
        "3,000",
        "10,000",
        "30,000",
    ]
    assert logarithmic([1, 100]).place(10) == pytest.approx(0.5)


def test_points_stand_at_their_values_and_bars_at_their_spread() -> None:
    low, high = Point(0, 0.0), Point(1, 1.0, spread=0.5)
    chart = Chart("t", "a", Axis(steps(["16", "32"]), "x"), Axis(linear([0, 1]), "y"), has_names=True)
    chart.add_lines([Line("m", [low, high], "one")])
    dots = [float(dot.attrib["cy"]) for dot in chart.element.iter("circle")]
    assert dots == [HEIGHT - BOTTOM, TOP]
    [bar] = [path.attrib["d"] for path in chart.element.iter("path") if path.attrib["class"] == "one bar"]
    ends = [float(found) for found in re.match(r"M\S+ (\S+?)V([\d.-]+)", bar).groups()]  # type: ignore[union-attr]
    assert ends[0] - TOP == TOP - ends[1] == (HEIGHT - BOTTOM - TOP) / 2


def test_sixteen_names_do_not_lie_upon_each_other() -> None:
    element = draw(*(line(f"method{i}", 0.5, 0.6 + i / 10_000) for i in range(16)))
    heights = sorted(
        float(text.attrib["y"]) for text in element.iter("text") if "name" in text.attrib["class"].split()
    )
    assert len(heights) == 16
    assert all(after - before > 10 for before, after in pairwise(heights))


@given(st.text("abc -", max_size=200), st.text("abc -", max_size=200))
def test_a_title_and_a_note_of_any_length_stay_within_the_drawing(title: str, note: str) -> None:
    axis = Axis(linear([0, 1]), "x")
    element = Chart(title, "a", axis, axis, has_names=False, note=note).element
    head = [text for text in element.iter("text") if text.attrib["class"] in ("title", "note")]
    assert "".join(text.text or "" for text in head).replace(" ", "") == (title + note).replace(" ", "")
    _, top, width, height = map(float, element.attrib["viewBox"].split())
    heights = [float(text.attrib["y"]) for text in head]
    assert all(LEFT + 7.5 * len(text.text or "") < width for text in head)  # a letter of 12 px, in bold
    assert all(top + 12 <= place < TOP for place in heights) and top + height == HEIGHT
    assert all(after - before > 12 for before, after in pairwise(heights))


def test_the_plot_of_a_score_says_its_correlation_below_its_title() -> None:
    text = page_of(scored())
    assert re.search(r'class="title">agnews, 64 bits<.*?class="note">rank correlation 1.00, 5 runs<', text)


def test_a_long_name_of_a_line_widens_the_drawing() -> None:
    for name in ("itq", "arxiv100k vdsh", "a name of twice as many letters"):
        element = draw(line(name, 0.5, 0.6))
        width = float(element.attrib["viewBox"].split()[2])
        [drawn] = [text for text in element.iter("text") if text.text == name]
        assert float(drawn.attrib["x"]) + 7 * len(name) <= width
        assert width >= WIDTH


def test_lines_of_costs_are_named_by_corpus_and_method() -> None:
    rows = costed() + [row | {"corpus": "tmc"} for row in costed()]
    names = re.findall(r'class="\w+ name">([^<]*)<', page_of(rows))
    assert names == ["ng20 snuh", "ng20 vdsh", "tmc snuh", "tmc vdsh"] * 3
    longer = [row | {"bits": 128} for row in rows]
    names = re.findall(r'class="\w+ name">([^<]*)<', page_of(rows + longer))
    assert len(set(names)) == len(names) / 3


def test_a_line_far_below_the_others_is_named_and_not_drawn() -> None:
    lines = [line("a", 0.6, 0.7), line("b", 0.65, 0.68), line("lsh", 0.1, 0.2)]
    kept, below = without_far(lines)
    assert [one.name for one in below] == ["lsh"] and {one.name for one in kept} == {"a", "b"}
    assert without_far(lines[:2]) == (sorted(lines[:2], key=lambda one: one.points[1].y), [])


def test_the_strongest_is_judged_at_the_lengths_that_it_has() -> None:
    short = Line("short", [Point(0, 0.6)], "rest")  # the best at the one length that it has
    assert strongest([line("snuh", 0.9, 0.9), line("long", 0.5, 0.8), short]) == "short"


def test_many_labels_leave_the_rare_ones_without_a_mark() -> None:
    assert list(ranked(mapped(labels=3))) == ["label 0", "label 1", "label 2"]
    text = page_of(mapped(labels=MARKS + 5))
    assert "5 other labels" in text and text.count("<li class=") == MARKS


def test_a_map_has_a_mark_for_each_document() -> None:
    text = page_of(mapped())
    paths = re.findall(r'<path d="([^"]*)" class="hue\d"></path>', text)
    samples = 3  # in the legend
    assert sum(path.count("M") for path in paths) == 2 * 60 + samples


def test_defaults_are_what_rows_have_that_were_not_given_a_parameter() -> None:
    assert known_defaults("snuh", swept()) == DEFAULTS
    given = [row for row in swept() if row["parameters"].get("trees")]
    assert known_defaults("snuh", given)["trees"] is None
    assert known_defaults("vdsh", swept()) == {}


def test_a_bar_in_a_cell_does_not_end_it() -> None:
    table = Table(["a", "b"], [["1 | 2", "**3**"]], "About")
    assert table.markdown() == "About:\n\n| a      | b     |\n|--------|-------|\n| 1 \\| 2 | **3** |"
    assert table.without("a").titles == ["b"] and table.without("a").lines == [["**3**"]]
