"""What training costs: seconds an epoch of SNUH beside VDSH, time and memory as documents grow.

Three epochs of each: an epoch costs the same however many there are.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from snuh.experiments.cells import Printed, Table
from snuh.experiments.figures import Figures
from snuh.experiments.run import Row
from snuh.experiments.target import Choice, Target, Variant

EPOCHS = 3
USUAL = Choice(
    corpora=("ng20", "reuters", "tmc", "arxiv100k"),
    methods=("snuh", "vdsh"),
    bits=(64,),
    seeds=(0,),
    values=(1_000, 3_000, 10_000, 30_000, 100_000),  # documents to train on, at most
)
QUICK = replace(USUAL, corpora=("ng20",), values=(1_000, 100_000))

ABOUT = f"""Seconds of training an epoch (median of {EPOCHS}), seconds and memory of the whole fit.
The paper reports, at 64 bits on a GPU, 1.343 s for SNUH and 1.051 s for VDSH on ng20 (1.28 times as long),
3.791 s and 2.038 s on reuters (1.86), 5.238 s and 4.364 s on tmc (1.20)."""


@dataclass(frozen=True)
class Cost:
    """What training took, the mean over runs on the same documents."""

    epoch_seconds: float
    fit_seconds: float
    megabytes: float


def variants(choice: Choice) -> list[Variant]:
    """Return each method with each number of documents."""
    choice.check_not_given(["epochs"], target="efficiency")
    return [
        Variant(method, method, {"epochs": EPOCHS}, documents=int(value))
        for value in choice.values
        for method in choice.methods
    ]


def table(choice: Choice, variants: Sequence[Variant], rows: Sequence[Row]) -> Printed:
    """Return a line for each number of documents, a number that no corpus has left out."""
    titles = ["corpus", "bits", "documents"]
    for method in choice.methods:
        titles += [f"{method}: s an epoch", "s a fit", "MB"]
    if len(choice.methods) > 1:
        titles.append(f"{choice.methods[0]} / {choice.methods[1]}")
    lines = []
    for corpus in choice.corpora:
        for bits in choice.bits:
            lines += _lines(choice, corpus, bits, rows)
    return Printed(ABOUT, [Table(titles, lines)])


def costs(choice: Choice, corpus: str, bits: int, rows: Sequence[Row]) -> dict[int, list[Cost]]:
    """Return the cost of each method by the documents that there were, maybe fewer than wanted."""
    figures = Figures(choice, rows)
    found: dict[int, list[list[Row]]] = {}  # by documents and method
    for value in choice.values:
        of_methods = [
            figures.rows(corpus, bits, variant) for variant in variants(replace(choice, values=(value,)))
        ]
        if all(of_methods):
            same = found.setdefault(of_methods[0][0]["train_documents"], [[] for _ in of_methods])
            for before, more in zip(same, of_methods, strict=True):
                before.extend(more)
    return {docs: [_cost(of_method) for of_method in of_methods] for docs, of_methods in found.items()}


def _lines(choice: Choice, corpus: str, bits: int, rows: Sequence[Row]) -> list[list[str]]:
    lines = []
    for documents, of_methods in costs(choice, corpus, bits, rows).items():
        cells = []
        for cost in of_methods:
            cells += [f"{cost.epoch_seconds:.2f}", f"{cost.fit_seconds:.1f}", f"{cost.megabytes:,.0f}"]
        if len(of_methods) > 1:
            cells.append(f"{of_methods[0].epoch_seconds / of_methods[1].epoch_seconds:.2f}")
        lines.append([corpus, str(bits), f"{documents:,}", *cells])
    return lines


def _cost(rows: Sequence[Row]) -> Cost:
    epoch, fit, memory = (
        statistics.mean(row[name] for row in rows) for name in ("epoch_seconds", "seconds", "peak_megabytes")
    )
    return Cost(epoch, fit, memory)


EFFICIENCY = Target("efficiency", USUAL, QUICK, variants, table)
