"""Table 1 of the paper: precision@100 of every method on three corpora at four lengths of codes."""

from __future__ import annotations

from collections.abc import Sequence

from snuh.experiments.cells import Printed
from snuh.experiments.comparison import comparison
from snuh.experiments.paper import PRINTED_TABLE1
from snuh.experiments.run import Row
from snuh.experiments.target import Choice, Target, Variant
from snuh.methods import METHODS

USUAL = Choice(
    corpora=("ng20", "reuters", "tmc"),
    methods=tuple(METHODS),
    bits=(16, 32, 64, 128),
    seeds=(0, 1, 2),
)
QUICK = Choice(corpora=("ng20",), methods=tuple(METHODS), bits=(16, 64), seeds=(0,))


def variants(choice: Choice) -> list[Variant]:
    """Return each method as it is."""
    return [Variant(method, method) for method in choice.methods]


def table(choice: Choice, variants: Sequence[Variant], rows: Sequence[Row]) -> Printed:
    """Return the methods beside the paper's figures."""
    return comparison(choice, variants, rows, PRINTED_TABLE1)


TABLE1 = Target("table1", USUAL, QUICK, variants, table)
