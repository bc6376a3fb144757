"""The precision tables of the paper, Table 1, Table 2 and the appendix's, next to its reported numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from snuh.errors import InputError
from snuh.experiments.run import Row
from snuh.experiments.target import (
    PAPER_BITS,
    PAPER_CORPORA,
    PAPER_SEEDS,
    Aggregate,
    Choice,
    DescribedTables,
    Table,
    Target,
    Variant,
    bold,
    describe,
    format_fraction,
)
from snuh.methods import METHODS

ABLATIONS = (
    Variant("SNUH_ind", "snuh", {"correlation": "none"}),
    Variant("SNUH_prior", "snuh", {"correlation": "prior"}),
    Variant("SNUH", "snuh"),  # correlation="encoder" is the default: these are runs of Table 1
)
APPENDIX_BASELINES = ("rbsh", "pairrec")


@dataclass(frozen=True)
class ReportedTable:
    """Precision@100 as the paper reports it; the baselines are as reported by their own papers."""

    name: str
    rows: Mapping[str, Mapping[str, tuple[float, float, float, float]]]  # row, corpus: at PAPER_BITS

    def precision(self, corpus: str, row: str, bits: int) -> float | None:
        """Return the reported precision, if any; NAME.tfidf counts as the corpus NAME."""
        values = self.rows.get(row, {}).get(corpus.removesuffix(".tfidf"))
        return None if values is None or bits not in PAPER_BITS else values[PAPER_BITS.index(bits)]

    def best(self, corpus: str, bits: int) -> float | None:
        """Return the best reported precision of a column, if any."""
        values = (self.precision(corpus, row, bits) for row in self.rows)
        return max((value for value in values if value is not None), default=None)


REPORTED_TABLE1 = ReportedTable(
    "Table 1",
    {
        "sph": {
            "reuters": (0.6340, 0.6513, 0.6290, 0.6045),
            "tmc": (0.6055, 0.6281, 0.6143, 0.5891),
            "ng20": (0.3200, 0.3709, 0.3196, 0.2716),
        },
        "sth": {
            "reuters": (0.7351, 0.7554, 0.7350, 0.6986),
            "tmc": (0.3947, 0.4105, 0.4181, 0.4123),
            "ng20": (0.5237, 0.5860, 0.5806, 0.5443),
        },
        "vdsh": {
            "reuters": (0.7165, 0.7753, 0.7456, 0.7318),
            "tmc": (0.6853, 0.7108, 0.4410, 0.5847),
            "ng20": (0.3904, 0.4327, 0.1731, 0.0522),
        },
        "nbrreg": {
            "ng20": (0.4120, 0.4644, 0.4768, 0.4893),
        },
        "nash": {
            "reuters": (0.7624, 0.7993, 0.7812, 0.7559),
            "tmc": (0.6573, 0.6921, 0.6548, 0.5998),
            "ng20": (0.5108, 0.5671, 0.5071, 0.4664),
        },
        "gmsh": {
            "reuters": (0.7672, 0.8183, 0.8212, 0.7846),
            "tmc": (0.6736, 0.7024, 0.7086, 0.7237),
            "ng20": (0.4855, 0.5381, 0.5869, 0.5583),
        },
        "ammi": {
            "reuters": (0.8173, 0.8446, 0.8506, 0.8602),
            "tmc": (0.7096, 0.7416, 0.7522, 0.7627),
            "ng20": (0.5518, 0.5956, 0.6398, 0.6618),
        },
        "corrsh": {
            "reuters": (0.8212, 0.8420, 0.8465, 0.8482),
            "tmc": (0.7243, 0.7534, 0.7606, 0.7632),
            "ng20": (0.5839, 0.6183, 0.6279, 0.6359),
        },
        "snuh": {
            "reuters": (0.8320, 0.8466, 0.8560, 0.8624),
            "tmc": (0.7251, 0.7543, 0.7658, 0.7726),
            "ng20": (0.5775, 0.6387, 0.6646, 0.6731),
        },
    },
)

REPORTED_TABLE2 = ReportedTable(
    "Table 2",
    {
        "SNUH_ind": {
            "reuters": (0.7823, 0.8094, 0.8180, 0.8385),
            "tmc": (0.6978, 0.7307, 0.7421, 0.7526),
            "ng20": (0.4806, 0.5503, 0.6017, 0.6060),
        },
        "SNUH_prior": {
            "reuters": (0.8043, 0.8295, 0.8431, 0.8460),
            "tmc": (0.7177, 0.7408, 0.7518, 0.7528),
            "ng20": (0.5443, 0.6071, 0.6212, 0.6014),
        },
        "SNUH": REPORTED_TABLE1.rows["snuh"],
    },
)

REPORTED_APPENDIX = ReportedTable(
    "The appendix's table",
    {  # on the files of RBSH's authors
        "rbsh": {
            "reuters": (0.7740, 0.8149, 0.8120, 0.8088),
            "tmc": (0.7959, 0.8138, 0.8224, 0.8193),
            "ng20": (0.6087, 0.6385, 0.6655, 0.6668),
        },
        "pairrec": {
            "reuters": (0.8028, 0.8268, 0.8329, 0.8468),
            "tmc": (0.7991, 0.8239, 0.8280, 0.8303),
        },
        "snuh": {
            "reuters": (0.8063, 0.8369, 0.8483, 0.8567),
            "tmc": (0.7901, 0.8145, 0.8293, 0.8329),
            "ng20": (0.5679, 0.6444, 0.6806, 0.7004),
        },
    },
)


def compare(
    choice: Choice, variants: Sequence[Variant], rows: Sequence[Row], reported: ReportedTable
) -> DescribedTables:
    """Return our results next to the reported ones, the best of each column in bold."""
    aggregate = Aggregate(choice, rows)
    lines = list(product(choice.corpora, [variant.label for variant in variants]))
    columns = [["corpus", *(corpus for corpus, _ in lines)], ["method", *(label for _, label in lines)]]
    has_reported = False
    for bits in choice.bits:
        ours = [cell for corpus in choice.corpora for cell in aggregate.column(corpus, bits, variants)]
        columns.append([f"{bits} bits", *ours])
        theirs = [_reported_cell(reported, corpus, label, bits) for corpus, label in lines]
        if any(theirs):
            columns.append(["paper", *theirs])
            has_reported = True
    source = (
        f'In the columns "paper": {reported.name} of Ou et al. (ACL 2021), on other files of these corpora.'
    )
    return DescribedTables(describe(choice, source if has_reported else ""), [Table.from_columns(columns)])


def _reported_cell(reported: ReportedTable, corpus: str, label: str, bits: int) -> str:
    value = reported.precision(corpus, label, bits)
    return bold(format_fraction(value, digits=4), when=value == reported.best(corpus, bits))


def method_variants(choice: Choice) -> list[Variant]:
    """Return each method with its defaults."""
    return [Variant(method, method) for method in choice.methods]


def ablation_variants(choice: Choice) -> Sequence[Variant]:
    """Return the three variants of the paper's ablation."""
    if choice.methods != ("snuh",):
        raise InputError(f"table2 compares variants of snuh, got {', '.join(choice.methods)}: use table1")
    choice.check_not_set(["correlation"], target="table2")
    return ABLATIONS


def _target(
    name: str,
    methods: tuple[str, ...],
    variants: Callable[[Choice], Sequence[Variant]],
    reported: ReportedTable,
) -> Target:
    def table(choice: Choice, variants: Sequence[Variant], rows: Sequence[Row]) -> DescribedTables:
        return compare(choice, variants, rows, reported)

    default = Choice(PAPER_CORPORA, methods, PAPER_BITS, PAPER_SEEDS)
    return Target(
        name, default, replace(default, corpora=("ng20",), bits=(16, 64), seeds=(0,)), variants, table
    )


TABLE1 = _target("table1", tuple(METHODS), method_variants, REPORTED_TABLE1)
TABLE2 = _target("table2", ("snuh",), ablation_variants, REPORTED_TABLE2)
APPENDIX = _target("appendix", (*APPENDIX_BASELINES, "snuh", "snuh-plus"), method_variants, REPORTED_APPENDIX)
