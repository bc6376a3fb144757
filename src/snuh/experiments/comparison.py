"""A table of ours beside the paper's: a row for each corpus and variant, two columns for each length."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from snuh.experiments.cells import Printed, Table, bold, number
from snuh.experiments.figures import Figures, heading
from snuh.experiments.paper import PrintedTable
from snuh.experiments.run import Row
from snuh.experiments.target import Choice, Variant


def comparison(
    choice: Choice, variants: Sequence[Variant], rows: Sequence[Row], paper: PrintedTable
) -> Printed:
    """Return ours beside the paper's, the best of each column in bold."""
    figures = Figures(choice, rows)
    places = list(product(choice.corpora, [variant.label for variant in variants]))
    columns = [["corpus", *(corpus for corpus, _ in places)], ["method", *(label for _, label in places)]]
    has_paper = False
    for bits in choice.bits:
        ours = [cell for corpus in choice.corpora for cell in figures.compared(corpus, bits, variants)]
        columns.append([f"{bits} bits", *ours])
        theirs = [_printed(paper, corpus, label, bits) for corpus, label in places]
        if any(theirs):
            columns.append(["paper", *theirs])
            has_paper = True
    source = f'In the columns "paper": {paper.name} of Ou et al. (ACL 2021), on other files of these corpora.'
    return Printed(heading(choice, source if has_paper else ""), [Table.of_columns(columns)])


def _printed(paper: PrintedTable, corpus: str, label: str, bits: int) -> str:
    value = paper.figure(corpus, label, bits)
    return bold(number(value, digits=4), when=value == paper.best(corpus, bits))
