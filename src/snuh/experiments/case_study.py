"""The paper's case study: a query, and documents at growing Hamming distance from it.

The query is not picked: with seed 0 it is the first test document, with seed 1 the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from snuh.experiments.cells import markdown
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


def table(choice: Choice, variants: Sequence[Variant], rows: Sequence[Row]) -> str:
    """Print a table for each query."""
    figures = Figures(choice, rows)
    parts = [ABOUT]
    for corpus in choice.corpora:
        for bits in choice.bits:
            for variant in variants:
                for row in figures.rows(corpus, bits, variant):
                    parts.append(
                        f"{corpus}, {variant.label}, {bits} bits, seed {row['seed']}:\n\n{_table(row)}"
                    )
    return "\n\n".join(parts)


def _table(row: Row) -> str:
    query, documents = row["observed"]["query"], row["observed"]["documents"]
    lines = [("distance", "labels", "title"), ("query", _labels(query["labels"]), _plain(query["title"]))]
    lines += [(str(doc["distance"]), _labels(doc["labels"]), _plain(doc["title"])) for doc in documents]
    return markdown(list(zip(*lines, strict=True)))


def _labels(labels: Sequence[str]) -> str:
    return _plain(", ".join(labels))


def _plain(text: str) -> str:
    """Keep a text from ending its cell."""
    return text.replace("\\", "\\\\").replace("|", "\\|")


CASE_STUDY = Target("case-study", USUAL, QUICK, variants, table)
