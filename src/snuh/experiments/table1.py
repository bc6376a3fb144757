"""Table 1 of the paper: precision@100 of every method on three corpora at four lengths of codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from snuh.experiments.cells import Cell, bold, markdown, number
from snuh.experiments.paper import best_printed, printed
from snuh.experiments.run import Row, Select, run_key
from snuh.experiments.target import Choice, Target
from snuh.methods import METHODS

USUAL = Choice(
    corpora=("ng20", "reuters", "tmc"),
    methods=tuple(METHODS),
    bits=(16, 32, 64, 128),
    seeds=(0, 1, 2),
)
QUICK = Choice(corpora=("ng20",), methods=tuple(METHODS), bits=(16, 64), seeds=(0,))

PROTOCOLS: Mapping[Select, str] = {
    "score": "No labels before the evaluation: the epoch is chosen by the held-out score (--select score).",
    "labels": "The paper's protocol: the epoch is chosen by the labels of the validation split "
    "(--select labels).",
}


def table(choice: Choice, rows: Sequence[Row]) -> str:
    """Print ours beside the paper's, the best of each column in bold, as Markdown."""
    found = {run_key(row): row for row in rows}  # of several rows of a run the last counts
    places = list(product(choice.corpora, choice.methods))
    columns = [["corpus", *(corpus for corpus, _ in places)], ["method", *(method for _, method in places)]]
    for bits in choice.bits:
        columns.append([f"{bits} bits", *_ours(bits, choice, found)])
        theirs = [_theirs(corpus, method, bits) for corpus, method in places]
        if any(theirs):
            columns.append(["paper", *theirs])
    heading = _heading(choice, has_paper=any(title == "paper" for title, *_ in columns))
    return f"{heading}\n\n{markdown(columns)}"


def _ours(bits: int, choice: Choice, found: Mapping[str, Row]) -> list[str]:
    shown = []
    for corpus in choice.corpora:
        cells = [_cell(corpus, method, bits, choice, found) for method in choice.methods]
        best = max((cell.mean for cell in cells if cell.mean is not None), default=None)
        shown += [bold(cell.shown, when=cell.mean == best) + cell.rest for cell in cells]
    return shown


def _theirs(corpus: str, method: str, bits: int) -> str:
    value = printed(corpus, method, bits)
    return bold(number(value, digits=4), when=value == best_printed(corpus, bits))


def _cell(corpus: str, method: str, bits: int, choice: Choice, found: Mapping[str, Row]) -> Cell:
    keys = [choice.run(corpus, method, bits, seed).key for seed in choice.seeds]
    rows = [found[key] for key in keys if key in found]
    values = [row["precision"]["100"] for row in rows if row["error"] is None]
    return Cell(values, failed=len(rows) - len(values))


def _heading(choice: Choice, *, has_paper: bool) -> str:
    given = {**choice.parameters, **{f"features.{name}": value for name, value in choice.features.items()}}
    settings = ", ".join(f"{name}={value}" for name, value in given.items())
    lines = [
        "precision@100 on the test split: mean ± standard deviation (number of seeds).",
        PROTOCOLS[choice.select],
    ]
    if settings:
        lines.append(f"With {settings}.")
    if has_paper:
        lines.append(
            'In the columns "paper": Table 1 of Ou et al. (ACL 2021), on other files of these corpora.'
        )
    return "\n".join(lines)


TABLE1 = Target(name="table1", usual=USUAL, quick=QUICK, runs=Choice.every_run, table=table)
