"""The tables that stand beside the paper's: one for each corpus, with a plot where they have one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from snuh.experiments.appendix import APPENDIX
from snuh.experiments.run import Row, Select
from snuh.experiments.table1 import TABLE1
from snuh.experiments.table2 import TABLE2
from snuh.experiments.target import Variant
from snuh.report.choices import Held, of_methods
from snuh.report.grid import figures_table
from snuh.report.lengths import ABOUT as ABOUT_PLOTS
from snuh.report.lengths import length_plot
from snuh.report.section import Section, figures, paragraphs, repeat, without_protocol
from snuh.report.tags import tag


def table1(rows: Sequence[Row], select: Select) -> Section | None:
    """Return every method, with plots of precision against length."""
    return _section(of_methods(TABLE1, rows, select), "Table 1: every method", has_plots=True)


def table2(rows: Sequence[Row], select: Select) -> Section | None:
    """Return the ablation; SNUH as it is is in Table 1 already, and alone no reason for another one."""
    ablated = {variant.label for variant in TABLE2.variants(TABLE2.usual) if variant.parameters}
    part = _with_any(ablated, of_methods(TABLE2, rows, select))
    return _section(part, "Table 2: what the correlations are worth")


def appendix(rows: Sequence[Row], select: Select) -> Section | None:
    """Return SNUH beside the methods of the appendix, on corpora that have one of them."""
    part = _with_any({"rbsh", "pairrec"}, of_methods(APPENDIX, rows, select))
    return _section(part, "The appendix: SNUH beside RBSH and PairRec")


def _section(whole: Held | None, title: str, *, has_plots: bool = False) -> Section | None:
    if whole is None:
        return None
    target, choice = whole.target, whole.choice
    about = without_protocol(whole.printed.about, choice.select)
    tables, texts = [], [about]
    for corpus in choice.corpora:
        part = replace(whole.of_corpus(corpus), variants=_run(whole, corpus))
        caption = f"{title.partition(':')[0]}, {corpus}"
        (printed,) = part.printed.tables
        tables.append(figures_table(caption, printed.without("corpus")))
        texts.append(printed.markdown())
    elements = [*paragraphs(about), repeat(choice.select, target.name), *tables]
    plots = [length_plot(whole, corpus) for corpus in choice.corpora] if has_plots else []
    drawn = [plot for plot in plots if plot is not None]
    if drawn:
        elements += [
            tag("h4", "Precision against the length of codes"),
            tag("p", ABOUT_PLOTS),
            figures(*drawn),
        ]
    return Section(target.name, title, elements, "\n\n".join(texts))


def _with_any(labels: Collection[str], part: Held | None) -> Held | None:
    """Return the part on corpora that have a run of at least one of these variants."""
    if part is None:
        return None
    corpora = [
        corpus for corpus in part.choice.corpora if any(one.label in labels for one in _run(part, corpus))
    ]
    return replace(part, choice=replace(part.choice, corpora=tuple(corpora))) if corpora else None


def _run(part: Held, corpus: str) -> list[Variant]:
    """Return the variants that were run on a corpus, also in vain."""
    bits = part.choice.bits
    return [one for one in part.variants if any(part.figures.cell(corpus, n, one).rest for n in bits)]
