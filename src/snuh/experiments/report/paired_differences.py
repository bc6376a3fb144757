"""Section on paired differences: is one method better than another, with confidence intervals."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from snuh.experiments.precision_tables import TABLE1, TABLE2
from snuh.experiments.report.charts import (
    EMPHASIS,
    Interval,
    Ticks,
    interval_axis,
    interval_chart,
    linear_ticks,
    series_color,
)
from snuh.experiments.report.section import (
    OUR_METHODS,
    Child,
    Section,
    TargetResults,
    find_results,
    paragraphs,
    render_bold,
    results_table,
    table,
    tag,
)
from snuh.experiments.run import Row, Select
from snuh.experiments.target import Table, Variant, bold, format_fraction

CONFIDENCE = 0.95
MIN_DIFFERENCES = 3  # for a difference to be significant
SAME_DOCUMENTS = {"tmc500": "tmc"}  # corpora that contain another one: both count as one
MAX_SHOWN = 0.15  # of precision; intervals are cut there

DESCRIPTION = """Two runs with the same corpus, code length and seed are compared by the difference of their
precision@100, averaged over the seeds. Per corpus, the value is the mean over the code lengths with its 95 %
confidence interval (Student's t) and the number of code lengths. Overall, every corpus is one difference, the
mean over its code lengths: runs on the same documents are not independent, so they count once (tmc500 and tmc
together, as one contains the other). Bold: the interval excludes 0, with at least three differences. Above 0,
the method named first is better.

With so few corpora the overall intervals are wide, and the intervals of one corpus say nothing about others.
Without any true difference, one interval in twenty excludes 0. In the charts, arrows mark intervals that
extend beyond the axis.

In the tables "over the seeds", each corpus and code length stands alone: the mean over the seeds that both
methods have, with its 95 % interval, given at least three seeds. It shows whether another seed could reverse
the order."""


@dataclass(frozen=True)
class MeanDifference:
    """A mean difference with its confidence interval."""

    mean: float
    low: float
    high: float
    count: int

    @property
    def is_significant(self) -> bool:
        """Whether the interval excludes 0, with enough differences."""
        return self.count >= MIN_DIFFERENCES and (self.low > 0 or self.high < 0)

    def __str__(self) -> str:
        interval = f"{format_signed(self.low)} to {format_signed(self.high)}"
        return f"{bold(format_signed(self.mean), when=self.is_significant)} ({interval}), {self.count}"


@dataclass(frozen=True)
class Comparison:
    """One method against another, overall and by corpus; None with too few runs in common."""

    other: str
    overall: MeanDifference | None
    by_corpus: Mapping[str, MeanDifference | None]


def paired_differences(rows: Sequence[Row], select: Select) -> Section | None:
    """Compare our methods with every other method, and SNUH with its ablations."""
    elements, texts = paragraphs(DESCRIPTION), [" ".join(DESCRIPTION.split())]
    for target, firsts in ((TABLE1, OUR_METHODS), (TABLE2, ("SNUH",))):
        results = find_results(target, rows, select)
        if results is None:
            continue
        for index, ours in enumerate(firsts):
            others = _other_variants(results, ours, exclude=firsts[:index])
            if comparisons := compare(results, ours, others):
                elements.append(_comparison_table(ours, comparisons))
                texts.append(f"{ours} against:\n\n{_comparison_markdown(comparisons)}")
            by_seed = _table_over_seeds(results, ours, others)
            if by_seed.lines:
                elements.append(results_table(by_seed.caption, by_seed))
                texts.append(by_seed.markdown())
    return Section("pairs", "Paired differences", elements, "\n\n".join(texts)) if len(texts) > 1 else None


def t_interval(differences: Sequence[float]) -> MeanDifference | None:
    """Return the mean and Student's t interval of independent differences; None with fewer than two."""
    from scipy.stats import t

    if len(differences) < 2:
        return None
    mean = statistics.mean(differences)
    standard_error = statistics.stdev(differences) / len(differences) ** 0.5
    margin = float(t.ppf((1 + CONFIDENCE) / 2, len(differences) - 1)) * standard_error
    return MeanDifference(mean, mean - margin, mean + margin, len(differences))


def compare(results: TargetResults, ours: str, others: Sequence[Variant]) -> list[Comparison]:
    """Compare a variant with each other one that it has enough runs in common with."""
    comparisons = []
    for other in others:
        differences = {
            corpus: _differences_by_length(results, corpus, ours, other) for corpus in results.choice.corpora
        }
        by_corpus = {corpus: t_interval(by_length) for corpus, by_length in differences.items()}
        overall = t_interval(_mean_per_document_set(differences))
        if overall is not None or any(by_corpus.values()):
            comparisons.append(Comparison(other.label, overall, by_corpus))
    return comparisons


def format_signed(value: float) -> str:
    """Format a difference, always with its sign."""
    return f"{'−' if value < 0 else '+'}{format_fraction(abs(value), digits=3)}"


def _other_variants(results: TargetResults, ours: str, *, exclude: Sequence[str]) -> list[Variant]:
    """Return the variants to compare with; none if there are no runs of ours."""
    labels = [variant.label for variant in results.variants]
    return [one for one in results.variants if ours in labels and one.label not in (ours, *exclude)]


def _mean_per_document_set(differences: Mapping[str, Sequence[float]]) -> list[float]:
    """Return the mean over the code lengths of each set of documents."""
    means: dict[str, list[float]] = {}
    for corpus, by_length in differences.items():
        if by_length:
            means.setdefault(SAME_DOCUMENTS.get(corpus, corpus), []).append(statistics.mean(by_length))
    return [statistics.mean(same) for same in means.values()]


def _differences_by_length(results: TargetResults, corpus: str, ours: str, other: Variant) -> list[float]:
    """Return a difference per code length, the mean over the common seeds."""
    by_length = (_differences_by_seed(results, corpus, bits, ours, other) for bits in results.choice.bits)
    return [statistics.mean(by_seed) for by_seed in by_length if by_seed]


def _differences_by_seed(
    results: TargetResults, corpus: str, bits: int, ours: str, other: Variant
) -> list[float]:
    first = next(variant for variant in results.variants if variant.label == ours)
    mine, theirs = (results.aggregate.precision(corpus, bits, variant) for variant in (first, other))
    return [mine[seed] - theirs[seed] for seed in sorted(mine.keys() & theirs.keys())]


def _table_over_seeds(results: TargetResults, ours: str, others: Sequence[Variant]) -> Table:
    """Return one line per other variant and corpus, one column per code length."""
    lines = []
    for other in others:
        for corpus in results.choice.corpora:
            cells = []
            for bits in results.choice.bits:
                by_seed = _differences_by_seed(results, corpus, bits, ours, other)
                cells.append(_format(t_interval(by_seed)) if len(by_seed) >= MIN_DIFFERENCES else "")
            if any(cells):
                lines.append([other.label, corpus, *cells])
    titles = ["against", "corpus", *(f"{bits} bits" for bits in results.choice.bits)]
    return Table(titles, lines, caption=f"{ours} against the others, over the seeds")


def _comparison_markdown(comparisons: Sequence[Comparison]) -> str:
    corpora = _compared_corpora(comparisons)
    lines = [
        [one.other, _format(one.overall), *(_format(one.by_corpus[corpus]) for corpus in corpora)]
        for one in comparisons
    ]
    return Table(["against", "overall", *corpora], lines).markdown()


def _comparison_table(ours: str, comparisons: Sequence[Comparison]) -> Element:
    corpora = _compared_corpora(comparisons)
    colors = [EMPHASIS, *(series_color(index) for index in range(len(corpora)))]
    ticks = _ticks(comparisons)
    overall, *by_corpus = (
        tag("span", tag("span", "● ", class_=f"{color} symbol", aria_hidden="true"), name)
        for name, color in zip(("overall", *corpora), colors, strict=True)
    )
    labels = [format_signed(tick).removesuffix("0") if tick else "0" for tick in ticks]
    titles: list[Child] = ["against", overall, interval_axis(ticks, labels), *by_corpus]
    lines: list[list[Child]] = []
    for one in comparisons:
        differences = [one.overall, *(one.by_corpus[corpus] for corpus in corpora)]
        first, *rest = (_cell(difference) for difference in differences)
        drawn = [pair for pair in zip(differences, colors, strict=True) if pair[0] is not None]
        chart = interval_chart(
            f"{ours} against {one.other}",
            "; ".join(str(difference).replace("**", "") for difference, _ in drawn),
            [Interval(diff.low, diff.mean, diff.high, color) for diff, color in drawn if diff is not None],
            ticks,
        )
        lines.append([one.other, first, chart, *rest])
    return table(f"{ours} against the others: difference of precision@100", titles, lines, class_="pairs")


def _ticks(comparisons: Sequence[Comparison]) -> Ticks:
    ends = [
        max(-MAX_SHOWN, min(MAX_SHOWN, end))
        for one in comparisons
        for difference in (one.overall, *one.by_corpus.values())
        if difference is not None
        for end in (difference.low, difference.high)
    ]
    return linear_ticks([0.0, *ends], limit=4)


def _compared_corpora(comparisons: Sequence[Comparison]) -> list[str]:
    return [
        corpus for corpus in comparisons[0].by_corpus if any(one.by_corpus[corpus] for one in comparisons)
    ]


def _format(difference: MeanDifference | None) -> str:
    return "" if difference is None else str(difference)


def _cell(difference: MeanDifference | None) -> Child:
    """Return the mean, and below it the interval and the number of differences."""
    if difference is None:
        return ""
    mean, rest = str(difference).split(" ", 1)
    return tag("span", render_bold(mean), tag("small", rest))
