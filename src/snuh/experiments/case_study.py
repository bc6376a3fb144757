"""The paper's case study: a query, and documents at growing Hamming distance from it.

The query is not picked: with seed 0 it is the first test document, with seed 1 the second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from snuh.experiments.cells import Printed, Table
from snuh.experiments.figures import Figures
from snuh.experiments.run import Row
from snuh.experiments.target import Choice, Target, Variant

USUAL = Choice(corpora=("ng20",), methods=("snuh",), bits=(128,), seeds=(0, 1, 2))
QUICK = replace(USUAL, seeds=(0,))

ABOUT = (
    "Training documents at growing Hamming distance from a query; with seed 0 it is the first test document."
)


def variants(choice: Choice) -> list[Variant]:
    """Return each method, with documents to look at."""
    return [Variant(method, method, observe="examples") for method in choice.methods]


def table(choice: Choice, variants: Sequence[Variant], rows: Sequence[Row]) -> Printed:
    """Return a table for each query."""
    figures = Figures(choice, rows)
    tables = [
        _table(row)
        for corpus in choice.corpora
        for bits in choice.bits
        for variant in variants
        for row in figures.rows(corpus, bits, variant)
    ]
    return Printed(ABOUT, tables)


def _table(row: Row) -> Table:
    query, documents = row["observed"]["query"], row["observed"]["documents"]
    lines = [_line("query", query), *(_line(str(document["distance"]), document) for document in documents)]
    caption = f"{row['corpus']}, {row['method']}, {row['bits']} bits, seed {row['seed']}"
    return Table(("distance", "labels", "title"), lines, caption)


def _line(distance: str, document: Mapping[str, Any]) -> tuple[str, ...]:
    return distance, ", ".join(document["labels"]), document["title"]


CASE_STUDY = Target("case-study", USUAL, QUICK, variants, table)
