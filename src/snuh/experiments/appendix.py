"""The appendix of the paper: SNUH beside RBSH and PairRec."""

from __future__ import annotations

from collections.abc import Sequence

from snuh.experiments.cells import Printed
from snuh.experiments.comparison import comparison
from snuh.experiments.paper import PRINTED_APPENDIX
from snuh.experiments.run import Row
from snuh.experiments.table1 import variants
from snuh.experiments.target import Choice, Target, Variant

USUAL = Choice(
    corpora=("ng20", "reuters", "tmc"),
    methods=("rbsh", "pairrec", "snuh", "snuh-plus"),
    bits=(16, 32, 64, 128),
    seeds=(0, 1, 2),
)
QUICK = Choice(corpora=("ng20",), methods=USUAL.methods, bits=(16, 64), seeds=(0,))


def table(choice: Choice, variants: Sequence[Variant], rows: Sequence[Row]) -> Printed:
    """Return the methods beside the paper's figures, and what differs."""
    return comparison(choice, variants, rows, PRINTED_APPENDIX)


APPENDIX = Target("appendix", USUAL, QUICK, variants, table)
