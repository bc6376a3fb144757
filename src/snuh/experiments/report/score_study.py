"""Section on the scores without labels: do they track precision by labels?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from xml.etree.ElementTree import Element

from snuh.experiments.report.charts import BACKGROUND, Point, Series, Text, scatter_chart, series_color
from snuh.experiments.report.html import results_table
from snuh.experiments.report.section import (
    OUR_METHODS,
    Section,
    TargetResults,
    find_results,
    in_order,
    panels,
    paragraphs,
    reproduce_hint,
)
from snuh.experiments.run import Row, Select
from snuh.experiments.score_study import SCORE_STUDY, ScoreQuality, is_scored, score_quality
from snuh.experiments.scores import TUNING_SCORE
from snuh.experiments.tables import format_fraction

BOLD = "Bold: the highest correlation and the lowest loss of a column."

CHARTS = f"""The charts show precision by the score "{TUNING_SCORE}", which snuh tune uses to compare
settings, one point per run. Filled points are runs of snuh-plus (blue) and snuh (orange), empty points are
runs of other methods. The table has all scores that were tried."""


def score_study(rows: Sequence[Row], select: Select) -> Section | None:
    """Return a chart per corpus, and the table of the candidates."""
    results = find_results(SCORE_STUDY, [row for row in rows if is_scored(row)], select)
    if results is None:
        return None
    # One seed: the study is about methods and settings, and those with more seeds would weigh more.
    seeds = tuple(seed for seed in results.choice.seeds if seed in SCORE_STUDY.default.seeds)
    results = replace(results, choice=replace(results.choice, seeds=seeds or results.choice.seeds))
    rated = [
        (corpus, bits)
        for corpus, bits in product(results.choice.corpora, results.choice.bits)
        if _quality(results, corpus, bits)
    ]
    if not rated:
        return None
    results = results.only_corpora(*in_order(results.choice.corpora, (corpus for corpus, _ in rated)))
    output = replace(results.output, description=f"{results.output.description}\n{BOLD}")
    (table,) = output.tables
    elements = [
        *paragraphs(f"{output.description}\n\n{CHARTS}"),
        reproduce_hint(select, "score"),
        panels(*(_chart(results, corpus, bits) for corpus, bits in rated)),
        results_table("Scores without labels: rank correlation, and precision lost", table),
    ]
    return Section("score", "The score without labels", elements, output.markdown())


def _labelled_rows(results: TargetResults, corpus: str, bits: int) -> list[tuple[str, Row]]:
    return [
        (variant.label, row)
        for variant in results.variants
        for row in results.aggregate.rows(corpus, bits, variant)
    ]


def _quality(results: TargetResults, corpus: str, bits: int) -> ScoreQuality | None:
    return score_quality([row for _, row in _labelled_rows(results, corpus, bits)], TUNING_SCORE)


def _chart(results: TargetResults, corpus: str, bits: int) -> Element:
    quality = _quality(results, corpus, bits)
    note = (
        f"rank correlation {format_fraction(quality.correlation, digits=2)}, {quality.runs} runs"
        if quality
        else ""
    )
    colors = {method: series_color(index) for index, method in enumerate(OUR_METHODS)}
    points: dict[str, list[Point]] = {color: [] for color in (BACKGROUND, *reversed(colors.values()))}
    for label, row in _labelled_rows(results, corpus, bits):
        points[colors.get(row["method"], BACKGROUND)].append(_point(label, row))
    text = Text(
        f"{corpus}, {bits} bits",
        f"Precision at 100 by the score without labels on {corpus}, one point per run: {note}.",
        x_label=f'score "{TUNING_SCORE}"',
        y_label="precision@100",
        note=note,
    )
    return scatter_chart(text, [Series("", of_color, color) for color, of_color in points.items()])


def _point(label: str, row: Row) -> Point:
    score, precision = row["candidates"][TUNING_SCORE], row["precision"]["100"]
    return Point(score, precision, tooltip=f"{label}: score {score:.3f}, precision {precision:.3f}")
