"""Is one method better than another? Differences of paired runs, as numbers and as dots with intervals."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from snuh.experiments.cells import Table, bold, number
from snuh.experiments.paired import FEWEST, Difference, difference
from snuh.experiments.run import Row, Select
from snuh.experiments.table1 import TABLE1
from snuh.experiments.table2 import TABLE2
from snuh.experiments.target import Variant
from snuh.report.chart import drawing, style_of
from snuh.report.choices import Held, of_methods
from snuh.report.grid import cell, figures_table, table
from snuh.report.lengths import OURS
from snuh.report.scales import Scale, linear
from snuh.report.section import Section, paragraphs
from snuh.report.tags import Child, decimal, tag

SAME_DOCUMENTS = {"tmc500": "tmc"}  # corpora that hold those of another: both together count once
WIDTH, MARGIN, LANE = 230, 16, 8
REACH = 0.15  # of precision: what goes further is cut, and shown by an arrow

ABOUT = """Two runs with the same corpus, length of codes and seed are compared by the difference of their
precision@100. It is averaged over the seeds. By corpus, the figure is the mean over the lengths with its
95 % confidence interval (Student's t) and the number of lengths; over all, every corpus is one difference,
the mean over its lengths: runs on the same documents are much alike, and count once (tmc500 and tmc together,
as one holds the other). Where the interval leaves out 0, with three differences or more, the figure is bold.
Above 0: the one named first is better.

With as few corpora as here, intervals over all are wide, and those of one corpus say nothing about others.
Of twenty intervals about nothing, one leaves out 0 by chance. In the plots, arrows go on beyond the axis.

In the tables "over the seeds", each corpus and length is for itself: the mean over the seeds that both have,
and its 95 % interval over these, where there are three or more. It says whether another seed could turn the
order round."""


@dataclass(frozen=True)
class Comparison:
    """One method against another: over all, and by corpus, where there is enough to compare."""

    other: str
    overall: Difference | None
    by_corpus: dict[str, Difference | None]


def pairs(rows: Sequence[Row], select: Select) -> Section | None:
    """Return how ours compare with every other method, and SNUH with its variants."""
    elements, texts = paragraphs(ABOUT), [" ".join(ABOUT.split())]
    for target, firsts in ((TABLE1, OURS), (TABLE2, ("SNUH",))):
        held = of_methods(target, rows, select)
        for place, ours in enumerate(firsts):
            found = [] if held is None else comparisons(held, ours, but=firsts[:place])
            if found:
                elements.append(_table(ours, found))
                texts.append(f"{ours} against:\n\n{_markdown(found)}")
            by_seeds = None if held is None else _over_seeds(held, ours, but=firsts[:place])
            if by_seeds is not None and by_seeds.lines:
                elements.append(figures_table(by_seeds.caption, by_seeds))
                texts.append(by_seeds.markdown())
    return Section("pairs", "Paired comparisons", elements, "\n\n".join(texts)) if len(texts) > 1 else None


def comparisons(held: Held, ours: str, *, but: Sequence[str] = ()) -> list[Comparison]:
    """Compare a variant with each other one that it has enough in common with, but for some."""
    by_name = {variant.label: variant for variant in held.variants}
    if ours not in by_name:
        return []
    found = []
    for other in by_name:
        if other in (ours, *but):
            continue
        gaps = {corpus: _gaps(held, corpus, by_name[ours], by_name[other]) for corpus in held.choice.corpora}
        by_corpus = {corpus: difference(of_lengths) for corpus, of_lengths in gaps.items()}
        overall = difference(_one_of_each(gaps))
        if overall is not None or any(by_corpus.values()):
            found.append(Comparison(other, overall, by_corpus))
    return found


def _one_of_each(gaps: Mapping[str, Sequence[float]]) -> list[float]:
    """Return the mean over the lengths of each set of documents."""
    means: dict[str, list[float]] = {}
    for corpus, of_lengths in gaps.items():
        if of_lengths:
            means.setdefault(SAME_DOCUMENTS.get(corpus, corpus), []).append(statistics.mean(of_lengths))
    return [statistics.mean(of_same) for of_same in means.values()]


def _over_seeds(held: Held, ours: str, *, but: Sequence[str] = ()) -> Table | None:
    """Return a line for each other variant and corpus, a column for each length."""
    by_name = {variant.label: variant for variant in held.variants}
    if ours not in by_name:
        return None
    lines = []
    for other in (name for name in by_name if name not in (ours, *but)):
        for corpus in held.choice.corpora:
            cells = []
            for bits in held.choice.bits:
                of_seeds = _of_seeds(held, corpus, bits, by_name[ours], by_name[other])
                cells.append(shown(difference(of_seeds)) if len(of_seeds) >= FEWEST else "")
            if any(cells):
                lines.append([other, corpus, *cells])
    titles = ["against", "corpus", *(f"{bits} bits" for bits in held.choice.bits)]
    return Table(titles, lines, caption=f"{ours} against the others, over the seeds")


def _of_seeds(held: Held, corpus: str, bits: int, ours: Variant, other: Variant) -> list[float]:
    mine, theirs = (held.figures.precision(corpus, bits, variant) for variant in (ours, other))
    return [mine[seed] - theirs[seed] for seed in sorted(mine.keys() & theirs.keys())]


def _gaps(held: Held, corpus: str, ours: Variant, other: Variant) -> list[float]:
    """Return a difference for each length, the mean over the seeds that both have."""
    gaps = []
    for bits in held.choice.bits:
        of_seeds = _of_seeds(held, corpus, bits, ours, other)
        if of_seeds:
            gaps.append(statistics.mean(of_seeds))
    return gaps


def _table(ours: str, found: Sequence[Comparison]) -> Element:
    corpora = _corpora(found)
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


def _corpora(found: Sequence[Comparison]) -> list[str]:
    return [corpus for corpus in found[0].by_corpus if any(one.by_corpus[corpus] for one in found)]


def _styles(corpora: Sequence[str]) -> list[str]:
    return ["all", *(style_of(place) for place in range(len(corpora)))]


def _named(name: str, style: str) -> Element:
    return tag("span", tag("span", "● ", class_=f"{style} swatch", aria_hidden="true"), name)


def _cell(gap: Difference | None) -> Child:
    """Return the figure, and below it the interval and the number of differences."""
    if gap is None:
        return ""
    mean, rest = shown(gap).split(" ", 1)
    return tag("span", cell(mean), tag("small", rest))


def _markdown(found: Sequence[Comparison]) -> str:
    corpora = _corpora(found)
    lines = [
        [one.other, shown(one.overall), *(shown(one.by_corpus[corpus]) for corpus in corpora)]
        for one in found
    ]
    return Table(["against", "over all", *corpora], lines).markdown()


def shown(gap: Difference | None) -> str:
    """Write a difference, its interval and of how many it is the mean."""
    if gap is None:
        return ""
    interval = f"{signed(gap.low)} to {signed(gap.high)}"
    return f"{bold(signed(gap.mean), when=gap.is_clear)} ({interval}), {gap.count}"


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
