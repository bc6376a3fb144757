"""Table 2 of the paper, the ablation: what the correlations of documents are worth to SNUH."""

from __future__ import annotations

from collections.abc import Sequence

from snuh.errors import InputError
from snuh.experiments.cells import Printed
from snuh.experiments.comparison import comparison
from snuh.experiments.paper import PRINTED_TABLE2
from snuh.experiments.run import Row
from snuh.experiments.target import Choice, Target, Variant

USUAL = Choice(corpora=("ng20", "reuters", "tmc"), methods=("snuh",), bits=(16, 32, 64, 128), seeds=(0, 1, 2))
QUICK = Choice(corpora=("ng20",), methods=("snuh",), bits=(16, 64), seeds=(0,))

VARIANTS = (
    Variant("SNUH_ind", "snuh", {"correlation": "none"}),
    Variant("SNUH_prior", "snuh", {"correlation": "prior"}),
    Variant("SNUH", "snuh"),  # "encoder" is the default: these are the runs of Table 1
)


def variants(choice: Choice) -> Sequence[Variant]:
    """Return the three of the paper."""
    if choice.methods != ("snuh",):
        raise InputError(f"table2 compares variants of snuh, got {', '.join(choice.methods)}: use table1")
    choice.check_not_given(["correlation"], target="table2")
    return VARIANTS


def table(choice: Choice, variants: Sequence[Variant], rows: Sequence[Row]) -> Printed:
    """Return the variants beside the paper's figures."""
    return comparison(choice, variants, rows, PRINTED_TABLE2)


TABLE2 = Target("table2", USUAL, QUICK, variants, table)
