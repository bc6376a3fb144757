"""Sweeps: a run for each value of a parameter, shared with other targets where the value is the default."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from snuh.errors import InputError
from snuh.experiments.precision_tables import TABLE1
from snuh.experiments.runner import TARGETS
from snuh.experiments.sweeps import SWEEPS
from tests.experiments.worlds import finished, table_cells

TREES, TAU = TARGETS["trees"], TARGETS["tau"]

# What the runs of a corpus and seed are given, value by value.
GIVEN: dict[str, list[dict[str, Any]]] = {
    "trees": [{"correlation": "none"}, *({"trees": trees} for trees in (1, 2, 5, 10, 15)), {}],
    "neighbors": [*({"neighbors": neighbors} for neighbors in (1, 3, 5, 10, 15)), {}],
    "tau": [{"tau": 0.05}, {}, {"tau": 0.2}, {"tau": 0.5}, {"tau": 1.0}],
    "beta": [{"beta": beta} for beta in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)],  # by length if not given
}


def test_every_sweep_is_looked_at_here() -> None:
    assert [target.name for target in SWEEPS] == list(GIVEN)


@pytest.mark.parametrize("name", GIVEN)
def test_the_default_is_the_run_without_the_parameter(name: str) -> None:
    target = TARGETS[name]
    runs = target.runs(target.default)
    assert [run.parameters for run in runs[: len(GIVEN[name])]] == GIVEN[name]
    assert len({run.key for run in runs}) == len(runs) == len(GIVEN[name]) * 3 * 3
    assert {(run.method, run.bits) for run in runs} == {("snuh", 64)}
    of_table1 = {run.key for run in TABLE1.runs(TABLE1.default)}
    assert sum(run.key in of_table1 for run in runs) == GIVEN[name].count({}) * 3 * 3


@pytest.mark.parametrize("name", GIVEN)
def test_quick_takes_every_second_value(name: str) -> None:
    target = TARGETS[name]
    runs = target.runs(target.quick)
    assert [run.parameters for run in runs] == GIVEN[name][::2]
    assert {(run.corpus, run.bits, run.seed) for run in runs} == {("ng20", 64, 0)}


def test_a_table_has_a_row_for_each_value_and_a_column_for_each_corpus_and_length() -> None:
    choice = replace(TREES.default, corpora=("ng20", "tmc"), bits=(16, 64), values=(0, 5, 20))
    rows = [finished(mean, seed=seed) for seed, mean in enumerate((0.6, 0.7, 0.8))]
    rows += [finished(mean, seed=seed, parameters={"trees": 5}) for seed, mean in enumerate((0.5, 0.6))]
    rows += [finished(0.3, parameters={"correlation": "none"}), finished(0.9, parameters={"trees": 2})]
    rows += [finished(0.4, corpus="tmc", bits=64), finished(None, corpus="tmc", bits=64, seed=1)]
    text = TREES.markdown(choice, rows)
    assert table_cells(text) == [
        ["trees", "ng20, 16 bits", "ng20, 64 bits", "tmc, 16 bits", "tmc, 64 bits"],
        ["0 (correlation=none)", ".300 (1)", "", "", ""],
        ["5", ".550 ± .071 (2)", "", "", ""],
        ["20 (default)", "**.700** ± .100 (3)", "", "", "**.400** (1, 1 failed)"],
    ]
    assert "Method snuh, one row per value of trees." in text
    assert "A fit sees no labels" in text


def test_settings_hold_for_every_value() -> None:
    choice = replace(TAU.default, corpora=("ng20",), bits=(16,), values=(0.1, 0.2), parameters={"epochs": 2})
    assert [run.parameters for run in TAU.runs(choice)[:2]] == [{"epochs": 2}, {"epochs": 2, "tau": 0.2}]
    rows = [finished(0.5), finished(0.6, parameters={"epochs": 2})]
    text = TAU.markdown(choice, rows)
    assert table_cells(text)[1:] == [["0.1 (default)", "**.600** (1)"], ["0.2", ""]]
    assert "With epochs=2." in text


def test_defaults_are_those_of_the_chosen_method() -> None:
    target = TARGETS["neighbors"]
    of_sth = target.runs(replace(target.default, methods=("sth",), values=(20, 25), seeds=(0,)))
    assert [run.parameters for run in of_sth[:2]] == [{"neighbors": 20}, {}]


def test_no_trees_means_none_in_snuh_plus_either() -> None:
    runs = TREES.runs(replace(TREES.default, methods=("snuh-plus",)))
    assert runs[0].parameters == {"correlation": "none", "neighbor_words": 0.0}


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a method without the parameter": (
        {"methods": ("vdsh",)},
        'trees varies a parameter that vdsh does not have: .* such as "--method snuh"',
    ),
    "two methods": (
        {"methods": ("snuh", "snuh-plus")},
        "trees takes one method at a time, got snuh, snuh-plus",
    ),
    "the parameter": (
        {"parameters": {"trees": 5}},
        "trees sets trees itself: remove it from --set or from the settings file",
    ),
    "what 0 stands for": ({"parameters": {"correlation": "prior"}}, "trees sets correlation itself"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_sweep_has_no_use_for_is_refused(case: str) -> None:
    changes, expected = REFUSED[case]
    choice = replace(TREES.default, **changes)
    with pytest.raises(InputError, match=expected):
        TREES.runs(choice)
    with pytest.raises(InputError, match=expected):
        TREES.markdown(choice, [])
