"""What the table says: means, spreads, the paper's figures, the best in bold, and one protocol at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from snuh.experiments.estimate import seconds_left
from snuh.experiments.paper import PRINTED_TABLE1
from snuh.experiments.table1 import TABLE1
from snuh.experiments.target import Choice
from snuh.methods import METHODS
from tests.experiments.worlds import TINY, finished, table_cells, tiny_run

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
        figures = [figure for four in PRINTED_TABLE1.rows[method].values() for figure in four]
        assert abs(sum(figures) / 12 - average) < 1e-4
    assert PRINTED_TABLE1.figure("ng20.tfidf", "nbrreg", 64) == 0.4768
    assert PRINTED_TABLE1.figure("ng20", "snuh", 8) is None
    assert PRINTED_TABLE1.best("ng20", 16) == PRINTED_TABLE1.rows["corrsh"]["ng20"][0]


def test_table1_wants_every_method_and_a_whole_table_with_one_seed_first() -> None:
    runs = TABLE1.runs(TABLE1.usual)
    assert len({run.key for run in runs}) == len(runs) == len(METHODS) * 3 * 4 * 3
    assert {run.seed for run in runs[: len(runs) // 3]} == {0}
    assert len(TABLE1.runs(TABLE1.quick)) == len(METHODS) * 2


def test_the_time_left_comes_from_the_runs_most_like_those_to_do() -> None:
    rows = [
        finished(0.5, corpus="toy", seconds=10.0),
        finished(0.5, corpus="toy", bits=64, seconds=30.0),
        finished(0.5, corpus="ng20", seconds=50.0),
        finished(0.5, method="snuh-plus", seconds=90.0),
        finished(None, seconds=9_999.0),
    ]
    assert seconds_left([tiny_run(), tiny_run(bits=64)], rows) == 40.0
    assert seconds_left([tiny_run(bits=128)], rows) == 20.0  # the same method and corpus
    assert seconds_left([tiny_run(corpus="tmc")], rows) == 30.0  # the same method
    assert seconds_left([tiny_run(method="vdsh")], rows) == 40.0  # anything
    assert seconds_left([tiny_run()], []) is None
    rows.append(finished(0.5, corpus="toy", seconds=1.0, parameters=TINY))
    assert seconds_left([tiny_run()], rows) == 1.0  # the same in everything but the seed
