"""Is one method better than another? Differences of paired runs, as numbers and as dots with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from snuh.experiments.cells import Table, bold, number
from snuh.experiments.paired import Difference, difference
from snuh.experiments.run import Row, Select
from snuh.experiments.table1 import TABLE1
from snuh.report.chart import drawing, style_of
from snuh.report.choices import Held, of_methods
from snuh.report.grid import cell, table
from snuh.report.lengths import OURS
from snuh.report.scales import Scale, linear
from snuh.report.section import Section, paragraphs
from snuh.report.tags import Child, decimal, tag

WIDTH, MARGIN, LANE = 230, 16, 8
REACH = 0.15  # of precision: what goes further is cut, and shown by an arrow

ABOUT = """A pair is two runs with the same corpus, length of codes and seed, which differ in the method
alone. The figure is the mean of their differences of precision@100, with its 95 % confidence interval
(Student's t) and the number of pairs; where the interval leaves out 0, the figure is bold. Above 0: the
method named first is better.

In "over all" every pair counts alike, of whatever corpus, length and seed. Two pairs are the least that
has an interval, and mostly a very wide one. Pairs share documents, and seeds of one corpus are much
alike: the intervals say how steady a difference is on these corpora, and nothing about others. In the
plots, arrows go on beyond the axis."""


@dataclass(frozen=True)
class Comparison:
    """One method against another: over all, and by corpus, where there are pairs enough."""

    other: str
    overall: Difference | None
    by_corpus: dict[str, Difference | None]


def pairs(rows: Sequence[Row], select: Select) -> Section | None:
    """Return how ours compare with every other method."""
    held = of_methods(TABLE1, rows, select)
    if held is None:
        return None
    elements, texts = paragraphs(ABOUT), [" ".join(ABOUT.split())]
    for ours in OURS:
        found = comparisons(held, ours) if ours in held.choice.methods else []
        if found:
            elements.append(_table(ours, found))
            texts.append(f"{ours} against:\n\n{_markdown(found)}")
    return Section("pairs", "Paired comparisons", elements, "\n\n".join(texts)) if len(texts) > 1 else None


def comparisons(held: Held, ours: str) -> list[Comparison]:
    """Compare a method with each other one that has at least two runs to pair."""
    found = []
    for other in held.choice.methods:
        if other == ours:
            continue
        by_corpus = {corpus: _paired(held, [corpus], ours, other) for corpus in held.choice.corpora}
        overall = _paired(held, held.choice.corpora, ours, other)
        if overall is not None:
            found.append(Comparison(other, overall, by_corpus))
    return found


def _paired(held: Held, corpora: Sequence[str], ours: str, other: str) -> Difference | None:
    by_name = {variant.label: variant for variant in held.variants}
    first, second = [], []
    for corpus in corpora:
        for bits in held.choice.bits:
            mine, theirs = (held.figures.precision(corpus, bits, by_name[name]) for name in (ours, other))
            for seed in sorted(mine.keys() & theirs.keys()):
                first.append(mine[seed])
                second.append(theirs[seed])
    return difference(first, second)


def _table(ours: str, found: Sequence[Comparison]) -> Element:
    corpora = [corpus for corpus in found[0].by_corpus if any(one.by_corpus[corpus] for one in found)]
    ends = [
        max(-REACH, min(REACH, end))
        for one in found
        for gap in (one.overall, *one.by_corpus.values())
        if gap is not None
        for end in (gap.low, gap.high)
    ]
    scale = linear([0.0, *ends], ticks=4)
    swatches = [
        _named(name, style) for name, style in zip(("over all", *corpora), _styles(corpora), strict=True)
    ]
    titles: list[Child] = ["against", swatches[0], _axis(scale), *swatches[1:]]
    lines: list[list[Child]] = []
    for one in found:
        gaps = [one.overall, *(one.by_corpus[corpus] for corpus in corpora)]
        first, *rest = (_cell(gap) for gap in gaps)
        plot = _dots(f"{ours} against {one.other}", list(zip(gaps, _styles(corpora), strict=True)), scale)
        lines.append([one.other, first, plot, *rest])
    return table(f"{ours} against the others: difference of precision@100", titles, lines, class_="pairs")


def _styles(corpora: Sequence[str]) -> list[str]:
    return ["all", *(style_of(place) for place in range(len(corpora)))]


def _named(name: str, style: str) -> Element:
    return tag("span", tag("span", "● ", class_=f"{style} swatch", aria_hidden="true"), name)


def _cell(gap: Difference | None) -> Child:
    """Return the figure, and below it the interval and the pairs."""
    if gap is None:
        return ""
    mean, rest = shown(gap).split(" ", 1)
    return tag("span", cell(mean), tag("small", rest))


def _markdown(found: Sequence[Comparison]) -> str:
    lines = [[one.other, shown(one.overall), *map(shown, one.by_corpus.values())] for one in found]
    return Table(["method", "over all", *found[0].by_corpus], lines).markdown()


def shown(gap: Difference | None) -> str:
    """Write a difference, its interval and its pairs."""
    if gap is None:
        return ""
    interval = f"{signed(gap.low)} to {signed(gap.high)}"
    return f"{bold(signed(gap.mean), when=gap.is_clear)} ({interval}), {gap.pairs}"


def signed(value: float) -> str:
    """Write a difference with its sign, also where it is above 0."""
    sign = "−" if value < 0 else "+"
    return f"{sign}{number(abs(value), digits=3)}"


def _axis(scale: Scale) -> Element:
    """Return the head of the plots."""
    head = drawing(WIDTH, 14, "difference of precision", "The axis of the plots below.", style="dots")
    for tick in scale.ticks:
        text = signed(tick.value).removesuffix("0") if tick.value else "0"
        head.append(tag("text", text, x=_across(tick.value, scale), y=11, class_="tick middle"))
    return head


def _dots(title: str, gaps: Sequence[tuple[Difference | None, str]], scale: Scale) -> Element:
    drawn = [(gap, style) for gap, style in gaps if gap is not None]
    height = LANE * max(4, len(drawn)) + 4
    about = "; ".join(shown(gap).replace("**", "") for gap, _ in drawn)
    plot = drawing(WIDTH, height, title, about, style="dots")
    for tick in scale.ticks:
        style = "rule" if tick.value else "axis"
        plot.append(tag("path", d=f"M{decimal(_across(tick.value, scale))} 0V{height}", class_=style))
    top = (height - LANE * len(drawn)) / 2
    for lane, (gap, style) in enumerate(drawn):
        _draw_interval(plot, gap, scale, top + LANE * (lane + 0.5), style)
    return plot


def _draw_interval(plot: Element, gap: Difference, scale: Scale, height: float, style: str) -> None:
    low, high = (_across(min(max(end, scale.low), scale.high), scale) for end in (gap.low, gap.high))
    path = f"M{decimal(low)} {decimal(height)}H{decimal(high)}"
    if gap.low < scale.low:
        path += f"M{decimal(low + 4)} {decimal(height - 3)}l-4 3l4 3"
    if gap.high > scale.high:
        path += f"M{decimal(high - 4)} {decimal(height - 3)}l4 3l-4 3"
    plot.append(tag("path", d=path, class_=f"{style} interval"))
    if scale.low <= gap.mean <= scale.high:
        plot.append(tag("circle", cx=_across(gap.mean, scale), cy=height, r=3.2, class_=f"{style} dot"))


def _across(value: float, scale: Scale) -> float:
    return MARGIN + scale.place(value) * (WIDTH - 2 * MARGIN)
