"""Tables 1 and 2: means, deviations, the reported numbers, the best in bold, one protocol at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from snuh.errors import InputError
from snuh.experiments.precision_tables import REPORTED_TABLE1, REPORTED_TABLE2, TABLE1, TABLE2
from snuh.experiments.target import Choice
from snuh.methods import METHODS, method_class
from tests.experiments.worlds import finished, table_cells

CHOICE = Choice(corpora=("ng20",), methods=("snuh-plus", "snuh"), bits=(16, 64), seeds=(0, 1, 2))


def cells(choice: Choice, *rows: dict[str, Any]) -> dict[str, list[str]]:
    """Return the cells of the table by method."""
    return {method: rest for _, method, *rest in table_cells(TABLE1.markdown(choice, rows))}


def test_a_cell_has_mean_deviation_and_number_of_seeds_and_the_best_is_bold() -> None:
    rows = [finished(value, seed=seed) for seed, value in enumerate((0.5, 0.6))]
    rows += [finished(value, seed=seed, method="snuh-plus") for seed, value in enumerate((0.61, 0.63))]
    assert cells(CHOICE, *rows) == {
        "method": ["16 bits", "paper", "64 bits", "paper"],
        "snuh-plus": ["**.620** ± .014 (2)", "", "", ""],
        "snuh": [".550 ± .071 (2)", ".5775", "", "**.6646**"],
    }


def test_the_best_is_judged_by_the_seeds_that_all_have() -> None:
    rows = [finished(value, seed=seed) for seed, value in enumerate((0.5, 0.6))]
    lucky = cells(CHOICE, *rows, finished(0.59, method="snuh-plus", seed=1))
    assert [lucky[method][0] for method in ("snuh-plus", "snuh")] == [".590 (1)", "**.550** ± .071 (2)"]
    better = cells(CHOICE, *rows, finished(0.51, method="snuh-plus"))
    assert [better[method][0] for method in ("snuh-plus", "snuh")] == ["**.510** (1)", ".550 ± .071 (2)"]


def test_without_a_seed_that_all_have_nothing_is_called_the_best() -> None:
    apart = cells(CHOICE, finished(0.5), finished(0.6, method="snuh-plus", seed=1))
    assert [apart[method][0] for method in ("snuh-plus", "snuh")] == [".600 (1)", ".500 (1)"]


def test_a_single_seed_has_no_deviation() -> None:
    assert cells(CHOICE, finished(0.5))["snuh"][0] == "**.500** (1)"


def test_failed_runs_are_told_and_do_not_enter_the_mean() -> None:
    rows = [finished(0.5), finished(None, seed=1), finished(None, bits=64)]
    assert cells(CHOICE, *rows)["snuh"] == ["**.500** (1, 1 failed)", ".5775", "1 failed", "**.6646**"]


def test_the_last_row_of_a_run_counts() -> None:
    assert cells(CHOICE, finished(None), finished(0.7))["snuh"][0] == "**.700** (1)"


def test_protocols_settings_and_seeds_that_were_not_chosen_do_not_mix() -> None:
    others: list[dict[str, Any]] = [
        {"select": "labels"},
        {"parameters": {"tau": 0.2}},
        {"features": {"max_terms": 50}},
        {"seed": 3},
        {"corpus": "ng20.tfidf"},
    ]
    rows = [finished(0.5), *(finished(0.9, **other) for other in others)]
    assert cells(CHOICE, *rows)["snuh"][0] == "**.500** (1)"
    for changes in ({"select": "labels"}, {"parameters": {"tau": 0.2}}, {"features": {"max_terms": 50.0}}):
        assert cells(replace(CHOICE, **changes), *rows)["snuh"][0] == "**.900** (1)"


def test_the_heading_names_the_protocol_and_the_settings() -> None:
    label_free, by_labels = (
        TABLE1.markdown(replace(CHOICE, select=select), []) for select in ("label-free", "labels")
    )
    assert "A fit sees no labels" in label_free and "paper's protocol" not in label_free
    assert "The paper's protocol" in by_labels and "sees no labels" not in by_labels
    chosen = replace(CHOICE, parameters={"tau": 0.2}, features={"max_terms": 50})
    assert "With tau=0.2, features.max_terms=50." in TABLE1.markdown(chosen, [])


def test_a_corpus_that_is_not_in_the_paper_has_no_columns_of_it() -> None:
    choice = replace(CHOICE, corpora=("agnews",))
    assert cells(choice, finished(0.8, corpus="agnews"))["method"] == ["16 bits", "64 bits"]
    assert "paper" not in TABLE1.markdown(choice, [])


def test_the_papers_figures_average_to_what_it_prints() -> None:
    averages = {"sph": 0.5198, "sth": 0.5662, "vdsh": 0.5366, "nash": 0.6462, "gmsh": 0.6807}
    averages |= {"ammi": 0.7323, "corrsh": 0.7355, "snuh": 0.7474}
    for method, average in averages.items():
        figures = [figure for values in REPORTED_TABLE1.rows[method].values() for figure in values]
        assert abs(sum(figures) / 12 - average) < 1e-4
    assert REPORTED_TABLE1.precision("ng20.tfidf", "nbrreg", 64) == 0.4768
    assert REPORTED_TABLE1.precision("ng20", "snuh", 8) is None
    assert REPORTED_TABLE1.best("ng20", 16) == REPORTED_TABLE1.rows["corrsh"]["ng20"][0]


def test_table1_wants_every_method_and_a_whole_table_with_one_seed_first() -> None:
    runs = TABLE1.runs(TABLE1.default)
    assert len({run.key for run in runs}) == len(runs) == len(METHODS) * 3 * 4 * 3
    assert {run.seed for run in runs[: len(runs) // 3]} == {0}
    assert len(TABLE1.runs(TABLE1.quick)) == len(METHODS) * 2


def test_table2_wants_three_variants_and_shares_those_of_snuh_with_table1() -> None:
    runs = TABLE2.runs(TABLE2.default)
    assert len({run.key for run in runs}) == len(runs) == 3 * 3 * 4 * 3
    assert {run.method for run in runs} == {"snuh"}
    given = [run.parameters for run in runs[:3]]
    assert given == [{"correlation": "none"}, {"correlation": "prior"}, {}]
    of_table1 = {run.key for run in TABLE1.runs(TABLE1.default)}
    assert [run.parameters for run in runs if run.key in of_table1] == [{}] * 36
    quick = TABLE2.runs(TABLE2.quick)
    assert {(run.corpus, run.bits, run.seed) for run in quick} == {("ng20", 16, 0), ("ng20", 64, 0)}
    assert len(quick) == 6


def test_a_run_of_snuh_without_parameters_is_the_variant_with_both_correlations() -> None:
    assert method_class("snuh")().correlation == "encoder"


def test_each_variant_has_its_own_figures_beside_the_papers() -> None:
    choice = replace(TABLE2.default, corpora=("ng20",), bits=(16, 128))
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
    for corpus, figures in REPORTED_TABLE2.rows["SNUH"].items():
        assert [REPORTED_TABLE2.best(corpus, bits) for bits in (16, 32, 64, 128)] == list(figures)


@pytest.mark.parametrize("methods", [("vdsh",), ("snuh", "snuh-plus")])
def test_other_methods_are_refused(methods: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match=rf"variants of snuh, got {', '.join(methods)}: use table1"):
        TABLE2.runs(replace(TABLE2.default, methods=methods))


def test_the_parameter_that_tells_the_variants_apart_cannot_be_given() -> None:
    with pytest.raises(
        InputError, match="table2 sets correlation itself: remove it from --set or from the settings file"
    ):
        TABLE2.runs(replace(TABLE2.default, parameters={"epochs": 2, "correlation": "prior"}))
