"""Sweeps of the paper's figures: one parameter at several values, one row per value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from snuh.errors import InputError
from snuh.experiments.run import Row
from snuh.experiments.target import (
    PAPER_CORPORA,
    PAPER_SEEDS,
    Aggregate,
    Choice,
    DescribedTables,
    Table,
    Target,
    Variant,
    describe,
)
from snuh.methods import method_class
from snuh.training import resolve_for_large_corpus


def sweep(parameter: str, values: tuple[float, ...]) -> Target:
    """Return the target that varies a parameter; it has the parameter's name."""
    default = Choice(PAPER_CORPORA, ("snuh",), bits=(64,), seeds=PAPER_SEEDS, values=values)
    quick = replace(default, corpora=("ng20",), seeds=(0,), values=values[::2])

    def variants(choice: Choice) -> list[Variant]:
        return _variants(parameter, choice)

    def table(choice: Choice, variants: Sequence[Variant], rows: Sequence[Row]) -> DescribedTables:
        return _table(parameter, choice, variants, rows)

    return Target(parameter, default, quick, variants, table)


def _variants(parameter: str, choice: Choice) -> list[Variant]:
    """Return a variant per value; at the default value it is the unchanged method, whose runs are shared."""
    if len(choice.methods) > 1:
        raise InputError(f"{parameter} takes one method at a time, got {', '.join(choice.methods)}")
    method = choice.methods[0]
    defaults = resolve_for_large_corpus(method_class(method)().get_params())
    if parameter not in defaults:
        raise InputError(
            f"{parameter} varies a parameter that {method} does not have: "
            'choose a method that has it, such as "--method snuh"'
        )
    return variants_from_defaults(defaults, parameter, choice)


def variants_from_defaults(defaults: Mapping[str, Any], parameter: str, choice: Choice) -> list[Variant]:
    """Return a variant per value, given the method's defaults, without importing the method."""
    method = choice.methods[0]
    variants = []
    for value in choice.values:
        settings = _settings(parameter, value, defaults)
        choice.check_not_set(list(settings), target=parameter)
        changed = {name: setting for name, setting in settings.items() if setting != defaults[name]}
        variants.append(Variant(_label(parameter, value, changed), method, changed))
    return variants


def _label(parameter: str, value: float, changed: Mapping[str, Any]) -> str:
    if parameter in changed:
        return str(value)
    settings = ", ".join(f"{name}={setting}" for name, setting in changed.items())
    return f"{value} ({settings or 'default'})"


def _settings(parameter: str, value: float, defaults: Mapping[str, Any]) -> dict[str, Any]:
    if parameter == "trees" and value == 0:
        # Without trees, documents are independent wherever a method would use the trees.
        without_trees = {"correlation": "none", "neighbor_words": 0.0}
        return {name: setting for name, setting in without_trees.items() if name in defaults}
    return {parameter: value}


def _table(
    parameter: str, choice: Choice, variants: Sequence[Variant], rows: Sequence[Row]
) -> DescribedTables:
    aggregate = Aggregate(choice, rows)
    columns = [[parameter, *(variant.label for variant in variants)]]
    for corpus in choice.corpora:
        for bits in choice.bits:
            columns.append([f"{corpus}, {bits} bits", *aggregate.column(corpus, bits, variants)])
    description = f"Method {choice.methods[0]}, one row per value of {parameter}."
    return DescribedTables(describe(choice, description), [Table.from_columns(columns)])


SWEEPS = (
    sweep("trees", (0, 1, 2, 5, 10, 15, 20)),  # M in the paper's figure; 0: no correlation
    sweep("neighbors", (1, 3, 5, 10, 15, 20)),  # K in the paper's figure
    sweep("tau", (0.05, 0.1, 0.2, 0.5, 1.0)),
    sweep("beta", (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)),
)
