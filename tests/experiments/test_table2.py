"""The ablation: three variants of snuh, beside what the paper prints of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from snuh.errors import InputError
from snuh.experiments.paper import PRINTED_TABLE2
from snuh.experiments.table1 import TABLE1
from snuh.experiments.table2 import TABLE2
from snuh.methods import method_class
from tests.experiments.worlds import finished, table_cells


def test_table2_wants_three_variants_and_shares_those_of_snuh_with_table1() -> None:
    runs = TABLE2.runs(TABLE2.usual)
    assert len({run.key for run in runs}) == len(runs) == 3 * 3 * 4 * 3
    assert {run.method for run in runs} == {"snuh"}
    given = [run.parameters for run in runs[:3]]
    assert given == [{"correlation": "none"}, {"correlation": "prior"}, {}]
    of_table1 = {run.key for run in TABLE1.runs(TABLE1.usual)}
    assert [run.parameters for run in runs if run.key in of_table1] == [{}] * 36
    quick = TABLE2.runs(TABLE2.quick)
    assert {(run.corpus, run.bits, run.seed) for run in quick} == {("ng20", 16, 0), ("ng20", 64, 0)}
    assert len(quick) == 6


def test_a_run_of_snuh_without_parameters_is_the_variant_with_both_correlations() -> None:
    assert method_class("snuh")().correlation == "encoder"


def test_each_variant_has_its_own_figures_beside_the_papers() -> None:
    choice = replace(TABLE2.usual, corpora=("ng20",), bits=(16, 128))
    given: list[dict[str, Any]] = [{"correlation": "none"}, {"correlation": "prior"}, {}]
    rows = [finished(0.1, parameters={"correlation": "optimum"})]
    for mean, parameters in zip((0.5, 0.7, 0.6), given, strict=True):
        rows += [finished(mean + seed / 100, seed=seed, parameters=parameters) for seed in range(3)]
    text = TABLE2.markdown(choice, rows)
    assert table_cells(text) == [
        ["corpus", "method", "16 bits", "paper", "128 bits", "paper"],
        ["ng20", "SNUH_ind", ".510 ± .010 (3)", ".4806", "", ".6060"],
        ["ng20", "SNUH_prior", "**.710** ± .010 (3)", ".5443", "", ".6014"],
        ["ng20", "SNUH", ".610 ± .010 (3)", "**.5775**", "", "**.6731**"],
    ]
    assert 'In the columns "paper": Table 2 of Ou et al.' in text


def test_in_the_paper_snuh_is_the_best_everywhere() -> None:
    for corpus, figures in PRINTED_TABLE2.rows["SNUH"].items():
        assert [PRINTED_TABLE2.best(corpus, bits) for bits in (16, 32, 64, 128)] == list(figures)


@pytest.mark.parametrize("methods", [("vdsh",), ("snuh", "snuh-plus")])
def test_other_methods_are_refused(methods: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match=rf"variants of snuh, got {', '.join(methods)}: use table1"):
        TABLE2.runs(replace(TABLE2.usual, methods=methods))


def test_the_parameter_that_tells_the_variants_apart_cannot_be_given() -> None:
    with pytest.raises(
        InputError, match="table2 sets correlation itself: leave it out of --set, or of the file"
    ):
        TABLE2.runs(replace(TABLE2.usual, parameters={"epochs": 2, "correlation": "prior"}))
