"""Plots: lines with error bars, or points, as SVG in the colours of the page."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from snuh.report.scales import Scale
from snuh.report.spreading import spread
from snuh.report.tags import decimal, tag

WIDTH, HEIGHT = 340, 300
LEFT, TOP, BOTTOM = 40, 38, 48
NAMES_WIDTH = 72  # for the names of lines, right of the plot: at least
LETTER_WIDTH = 7  # of a name, in bold and in a wide font
HEAD_LETTERS = 38  # in a line of the title, or of the note: what is longer is wrapped
HEAD_HEIGHT = 13
LINE_HEIGHT = 11.5
RADIUS = 2.6
STYLES = ("one", "two", "three", "four", "five")  # classes of the page, in colour
REST = "rest"  # what stands in the background, in grey


@dataclass(frozen=True)
class Point:
    """A value, how far it spreads to both sides, and a word about it."""

    x: float
    y: float
    spread: float = 0.0
    note: str = ""


@dataclass(frozen=True)
class Line:
    """Points of one name; `style` is one of STYLES, or REST."""

    name: str
    points: Sequence[Point]
    style: str
    is_dashed: bool = False


@dataclass(frozen=True)
class Axis:
    """A scale and what it measures."""

    scale: Scale
    title: str


class Chart:
    """A plot with a title, drawn step by step; `element` is what came out."""

    def __init__(self, title: str, about: str, x: Axis, y: Axis, *, has_names: bool, note: str = "") -> None:
        self._x, self._y = x.scale, y.scale
        self._right = WIDTH - (NAMES_WIDTH if has_names else 14)
        self._bottom = HEIGHT - BOTTOM
        self.element = drawing(WIDTH, HEIGHT, title, about)
        self._above = 0  # how far the head reaches beyond its usual place
        self._draw_head(title, note)
        self._draw_axes(x.title, y.title)

    def add_lines(self, lines: Sequence[Line]) -> None:
        """Draw lines, the ones in the background first, and their names at their ends."""
        for line in sorted(lines, key=lambda line: line.style != REST):
            self._draw_line(line)
        ends = [line.points[-1] for line in lines]
        heights = [self._height(end.y) for end in ends]
        places = spread(heights, gap=LINE_HEIGHT, low=TOP, high=self._bottom)
        for line, end, height, place in zip(lines, ends, heights, places, strict=True):
            style = f"{line.style} leader"
            path = f"M{decimal(self._across(end.x) + 4)} {decimal(height)}L{self._right + 4} {decimal(place)}"
            self.element.append(tag("path", d=path, class_=style))
            name = tag("text", line.name, x=self._right + 7, y=place + 3.6, class_=f"{line.style} name")
            self.element.append(name)
        longest = max((len(line.name) for line in lines), default=0)
        self._fit(self._right + max(NAMES_WIDTH, 9 + LETTER_WIDTH * longest))

    def add_points(self, points: Sequence[Point], style: str) -> None:
        """Draw points that no line joins."""
        for point in points:
            self._draw_dot(point, style, radius=3.2)

    def _draw_head(self, title: str, note: str) -> None:
        """Write the title, and the note below it; lines too many for their place go on above the drawing."""
        lines = [(text, "title") for text in textwrap.wrap(title, HEAD_LETTERS)]
        lines += [(text, "note") for text in textwrap.wrap(note, HEAD_LETTERS)]
        last = 14 + (HEAD_HEIGHT if note else 0)
        first = last - HEAD_HEIGHT * (len(lines) - 1)
        for place, (text, style) in enumerate(lines):
            self.element.append(tag("text", text, x=LEFT, y=first + HEAD_HEIGHT * place, class_=style))
        self._above = max(0, 14 - first)
        self._fit(WIDTH)

    def _fit(self, width: float) -> None:
        box = f"0 {-self._above} {decimal(width)} {HEIGHT + self._above}"
        self.element.set("viewBox", box)

    def _draw_axes(self, x_title: str, y_title: str) -> None:
        draw = self.element.append
        for tick in self._y.ticks:
            height = self._height(tick.value)
            draw(tag("path", d=f"M{LEFT} {decimal(height)}H{self._right}", class_="rule"))
            draw(tag("text", tick.text, x=LEFT - 5, y=height + 3.6, class_="tick end"))
        for tick in self._x.ticks:
            across = self._across(tick.value)
            draw(tag("path", d=f"M{decimal(across)} {self._bottom}v4", class_="axis"))
            draw(tag("text", tick.text, x=across, y=self._bottom + 15, class_="tick middle"))
            if tick.also:
                draw(tag("text", tick.also, x=across, y=self._bottom + 26, class_="tick middle"))
        draw(tag("path", d=f"M{LEFT} {self._bottom}H{self._right}", class_="axis"))
        middle = (LEFT + self._right) / 2
        draw(tag("text", x_title, x=middle, y=HEIGHT - 8, class_="middle"))
        turned = f"rotate(-90 10 {decimal((TOP + self._bottom) / 2)})"
        place = {"x": 10.0, "y": (TOP + self._bottom) / 2}
        draw(tag("text", y_title, transform=turned, class_="middle", **place))

    def _draw_line(self, line: Line) -> None:
        path = "L".join(
            f"{decimal(self._across(one.x))} {decimal(self._height(one.y))}" for one in line.points
        )
        style = f"{line.style} line" + (" dashed" if line.is_dashed else "")
        if len(line.points) > 1:
            self.element.append(tag("path", d=f"M{path}", class_=style))
        for point in line.points:
            if point.spread:
                across = self._across(point.x)
                low, high = (self._height(point.y + side * point.spread) for side in (-1, 1))
                bar = f"M{decimal(across)} {decimal(low)}V{decimal(high)}"
                caps = "".join(f"M{decimal(across - 3)} {decimal(end)}h6" for end in (low, high))
                self.element.append(tag("path", d=bar + caps, class_=f"{line.style} bar"))
            self._draw_dot(point, line.style, radius=RADIUS)

    def _draw_dot(self, point: Point, style: str, *, radius: float) -> None:
        note = [tag("title", point.note)] if point.note else []
        place = {"cx": self._across(point.x), "cy": self._height(point.y), "r": radius}
        self.element.append(tag("circle", *note, class_=f"{style} dot", **place))

    def _across(self, value: float) -> float:
        return LEFT + self._x.place(value) * (self._right - LEFT)

    def _height(self, value: float) -> float:
        return self._bottom - self._y.place(value) * (self._bottom - TOP)


def style_of(place: int) -> str:
    """Return the style of the first line, of the second and so on."""
    return STYLES[place] if place < len(STYLES) else REST


def drawing(width: float, height: float, title: str, about: str, *, style: str = "chart") -> Element:
    """Return an empty drawing that says what it shows to those who do not see it."""
    box = f"0 0 {decimal(width)} {decimal(height)}"
    return tag("svg", tag("title", title), tag("desc", about), viewBox=box, role="img", class_=style)
