"""The study of the score: does what chooses without labels track precision by labels?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from xml.etree.ElementTree import Element

from snuh.experiments.cells import number
from snuh.experiments.run import Row, Select
from snuh.experiments.score_study import SCORE_STUDY, Verdict, is_scored, verdict
from snuh.report.chart import REST, STYLES, Axis, Chart, Point
from snuh.report.choices import Held, in_order, of_methods
from snuh.report.grid import figures_table
from snuh.report.lengths import OURS
from snuh.report.scales import linear
from snuh.report.section import Section, figures, paragraphs, repeat

USED = "reach"  # the candidate that chooses between runs

BOLD = "Bold: the highest correlation of a column, and the least that is lost."

ABOUT = f"""In the plots: the score "{USED}", which chooses settings in snuh tune, against precision, a
point for each run. Filled points are runs of snuh-plus (blue) and of snuh (orange), empty ones those of
all others. The table has the other scores that were tried."""


def score(rows: Sequence[Row], select: Select) -> Section | None:
    """Return a plot for each corpus and the table of the candidates."""
    scored = [row for row in rows if is_scored(row)]
    held = of_methods(SCORE_STUDY, scored, select)
    if held is None:
        return None
    # One seed, as the study is about methods and settings: more of some would weigh them more.
    usual = tuple(seed for seed in held.choice.seeds if seed in SCORE_STUDY.usual.seeds)
    held = replace(held, choice=replace(held.choice, seeds=usual or held.choice.seeds))
    corpora = {
        corpus
        for corpus, bits in product(held.choice.corpora, held.choice.bits)
        if _judged(held, corpus, bits)
    }
    if not corpora:
        return None
    held = replace(held, choice=replace(held.choice, corpora=in_order(held.choice.corpora, corpora)))
    places = product(held.choice.corpora, held.choice.bits)
    plots = [_plot(held, *place) for place in places if _judged(held, *place)]
    printed = replace(held.printed, about=f"{held.printed.about}\n{BOLD}")
    (table,) = printed.tables
    elements = [
        *paragraphs(f"{printed.about}\n\n{ABOUT}"),
        repeat(select, "score"),
        figures(*plots),
        figures_table("Scores without labels: rank correlation, and precision lost", table),
    ]
    return Section("score", "The score without labels", elements, printed.markdown())


def _found(held: Held, corpus: str, bits: int) -> list[tuple[str, Row]]:
    return [
        (variant.label, row) for variant in held.variants for row in held.figures.rows(corpus, bits, variant)
    ]


def _judged(held: Held, corpus: str, bits: int) -> Verdict | None:
    return verdict([row for _, row in _found(held, corpus, bits)], USED)


def _plot(held: Held, corpus: str, bits: int) -> Element:
    found, judged = _found(held, corpus, bits), _judged(held, corpus, bits)
    said = f"rank correlation {number(judged.correlation, digits=2)}, {judged.runs} runs" if judged else ""
    styles = dict(zip(OURS, STYLES, strict=False))
    points = [(_point(label, row), styles.get(row["method"], REST)) for label, row in found]
    chart = Chart(
        f"{corpus}, {bits} bits",
        f"Precision at 100 against the score without labels on {corpus}, a point for each run: {said}.",
        Axis(linear(point.x for point, _ in points), f'score "{USED}"'),
        Axis(linear(point.y for point, _ in points), "precision@100"),
        has_names=False,
        note=said,
    )
    for style in (REST, *reversed(STYLES[: len(OURS)])):  # what comes last lies above
        chart.add_points([point for point, of_point in points if of_point == style], style)
    return chart.element


def _point(label: str, row: Row) -> Point:
    value, precision = row["candidates"][USED], row["precision"]["100"]
    return Point(value, precision, note=f"{label}: score {value:.3f}, precision {precision:.3f}")
