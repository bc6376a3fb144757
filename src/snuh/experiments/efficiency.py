"""Training cost: seconds per epoch of SNUH and VDSH, time and memory by the number of documents.

Each fit has three epochs: the cost of an epoch does not depend on their number.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from snuh.experiments.run import Row
from snuh.experiments.target import PAPER_CORPORA, Aggregate, Choice, DescribedTables, Table, Target, Variant

EPOCHS = 3
DEFAULT = Choice(
    corpora=(*PAPER_CORPORA, "arxiv100k"),
    methods=("snuh", "vdsh"),
    bits=(64,),
    seeds=(0,),
    values=(1_000, 3_000, 10_000, 30_000, 100_000),  # maximum number of training documents
)
QUICK = replace(DEFAULT, corpora=("ng20",), values=(1_000, 100_000))

DESCRIPTION = f"""Training seconds per epoch (median of {EPOCHS}), seconds and peak memory of the whole fit.
The paper reports, at 64 bits on a GPU, 1.343 s for SNUH and 1.051 s for VDSH on ng20 (1.28 times as long),
3.791 s and 2.038 s on reuters (1.86), 5.238 s and 4.364 s on tmc (1.20)."""


@dataclass(frozen=True)
class Cost:
    """The cost of training, the mean over runs on the same documents."""

    epoch_seconds: float
    fit_seconds: float
    megabytes: float


def variants(choice: Choice) -> list[Variant]:
    """Return each method with each number of documents."""
    choice.check_not_set(["epochs"], target="efficiency")
    return [
        Variant(method, method, {"epochs": EPOCHS}, documents=int(value))
        for value in choice.values
        for method in choice.methods
    ]


def table(choice: Choice, variants: Sequence[Variant], rows: Sequence[Row]) -> DescribedTables:
    """Return one line per number of documents that a corpus has."""
    titles = ["corpus", "bits", "documents"]
    for method in choice.methods:
        titles += [f"{method}: s per epoch", "s per fit", "MB"]
    if len(choice.methods) > 1:
        titles.append(f"{choice.methods[0]} / {choice.methods[1]}")
    lines = []
    for corpus in choice.corpora:
        for bits in choice.bits:
            lines += _lines(choice, corpus, bits, rows)
    return DescribedTables(DESCRIPTION, [Table(titles, lines)])


def costs(choice: Choice, corpus: str, bits: int, rows: Sequence[Row]) -> dict[int, list[Cost]]:
    """Return the cost of each method by the number of documents used, which may be lower than requested."""
    aggregate = Aggregate(choice, rows)
    by_documents: dict[int, list[list[Row]]] = {}  # number of documents: rows of each method
    for value in choice.values:
        by_method = [
            aggregate.rows(corpus, bits, variant) for variant in variants(replace(choice, values=(value,)))
        ]
        if all(by_method):
            same = by_documents.setdefault(by_method[0][0]["train_documents"], [[] for _ in by_method])
            for collected, more in zip(same, by_method, strict=True):
                collected.extend(more)
    return {docs: [_cost(rows) for rows in by_method] for docs, by_method in by_documents.items()}


def _lines(choice: Choice, corpus: str, bits: int, rows: Sequence[Row]) -> list[list[str]]:
    lines = []
    for documents, by_method in costs(choice, corpus, bits, rows).items():
        cells = []
        for cost in by_method:
            cells += [f"{cost.epoch_seconds:.2f}", f"{cost.fit_seconds:.1f}", f"{cost.megabytes:,.0f}"]
        if len(by_method) > 1:
            cells.append(f"{by_method[0].epoch_seconds / by_method[1].epoch_seconds:.2f}")
        lines.append([corpus, str(bits), f"{documents:,}", *cells])
    return lines


def _cost(rows: Sequence[Row]) -> Cost:
    epoch, fit, memory = (
        statistics.mean(row[name] for row in rows) for name in ("epoch_seconds", "seconds", "peak_megabytes")
    )
    return Cost(epoch, fit, memory)


EFFICIENCY = Target("efficiency", DEFAULT, QUICK, variants, table)
