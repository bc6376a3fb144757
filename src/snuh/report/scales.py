"""Axes: where a value stands between the ends of a plot, and which values are written beside it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

SMALLEST = 1e-9  # what is below is taken for 0


@dataclass(frozen=True)
class Tick:
    """A value with its text on an axis; `also` is a second line below it."""

    value: float
    text: str
    also: str = ""


@dataclass(frozen=True)
class Scale:
    """An axis from `low` to `high`, in steps of equal size, or of equal ratio where it is logarithmic."""

    low: float
    high: float
    ticks: Sequence[Tick]
    is_log: bool = False

    def place(self, value: float) -> float:
        """Return where a value stands: 0 at the low end, 1 at the high one."""
        low, high, value = ((math.log(end) if self.is_log else end) for end in (self.low, self.high, value))
        return (value - low) / (high - low)


def linear(values: Iterable[float], *, ticks: int = 5) -> Scale:
    """Return an axis of round numbers around the values."""
    found = list(values)
    low, high = min(found), max(found)
    size = max(abs(low), abs(high))
    size = size if size > SMALLEST else 1.0
    wide = high - low if high - low > SMALLEST * size else size  # of values that are all but equal
    step = _round_step(wide / ticks)
    first, last = math.floor(low / step), math.ceil(high / step)
    last = max(last, first + 1)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    numbers = [round(place * step, 10) for place in range(first, last + 1)]
    return Scale(first * step, last * step, [Tick(value, _short(value, digits)) for value in numbers])


def logarithmic(values: Iterable[float]) -> Scale:
    """Return an axis of 1, 3, 10, 30 and so on, around values above 0."""
    found = list(values)
    marks = [mark * 10.0**power for power in range(-4, 9) for mark in (1, 3)]
    first = max(place for place, mark in enumerate(marks) if mark <= min(found) or place == 0)
    last = min(place for place, mark in enumerate(marks) if mark >= max(found) or place == len(marks) - 1)
    kept = marks[first : max(last, first + 1) + 1]
    return Scale(kept[0], kept[-1], [Tick(mark, f"{mark:,.6g}") for mark in kept], is_log=True)


def steps(texts: Sequence[str], also: Sequence[str] = ()) -> Scale:
    """Return an axis with a place for each text, as far from each other: 0, 1, 2 and so on."""
    below = [*also, *[""] * (len(texts) - len(also))]
    ticks = [Tick(place, text, under) for place, (text, under) in enumerate(zip(texts, below, strict=True))]
    return Scale(-0.25, len(texts) - 0.75, ticks)


def _round_step(step: float) -> float:
    power: float = 10.0 ** math.floor(math.log10(step))
    return next(factor * power for factor in (1, 2, 5, 10) if step <= factor * power * (1 + 1e-9))


def _short(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}"
    return text.removeprefix("0") if 0 < value < 1 else text
