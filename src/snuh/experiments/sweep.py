"""One parameter at many values: a row for each value, a column for each corpus and length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from snuh.errors import InputError
from snuh.experiments.cells import Printed, Table
from snuh.experiments.figures import Figures, heading
from snuh.experiments.run import Row
from snuh.experiments.target import Choice, Target, Variant
from snuh.methods import method_class
from snuh.methods.sizes import resolve_for_large_corpus


def sweep(parameter: str, values: tuple[float, ...]) -> Target:
    """Return the target of a parameter; it has the parameter's name."""
    whole = Choice(
        corpora=("ng20", "reuters", "tmc"), methods=("snuh",), bits=(64,), seeds=(0, 1, 2), values=values
    )
    quick = replace(whole, corpora=("ng20",), seeds=(0,), values=values[::2])

    def variants(choice: Choice) -> list[Variant]:
        return _variants(parameter, choice)

    def table(choice: Choice, variants: Sequence[Variant], rows: Sequence[Row]) -> Printed:
        return _table(parameter, choice, variants, rows)

    return Target(parameter, whole, quick, variants, table)


def _variants(parameter: str, choice: Choice) -> list[Variant]:
    """Return a variant for each value; the default value is the method as it is, a run that others share."""
    if len(choice.methods) > 1:
        raise InputError(f"{parameter} takes one method at a time, got {', '.join(choice.methods)}")
    method = choice.methods[0]
    defaults = resolve_for_large_corpus(method_class(method)().get_params())
    if parameter not in defaults:
        raise InputError(
            f"{parameter} varies a parameter that {method} does not have: "
            'choose a method that has it, such as "--method snuh"'
        )
    return variants_beside(defaults, parameter, choice)


def variants_beside(defaults: Mapping[str, Any], parameter: str, choice: Choice) -> list[Variant]:
    """Return a variant for each value, where the method's defaults are known: nothing heavy is imported."""
    method = choice.methods[0]
    variants = []
    for value in choice.values:
        settings = _settings(parameter, value, defaults)
        choice.check_not_given(list(settings), target=parameter)
        given = {name: setting for name, setting in settings.items() if setting != defaults[name]}
        variants.append(Variant(_label(parameter, value, given), method, given))
    return variants


def _label(parameter: str, value: float, given: Mapping[str, Any]) -> str:
    if parameter in given:
        return str(value)
    means = ", ".join(f"{name}={setting}" for name, setting in given.items())
    return f"{value} ({means or 'default'})"


def _settings(parameter: str, value: float, defaults: Mapping[str, Any]) -> dict[str, Any]:
    if parameter == "trees" and value == 0:
        # No tree at all: documents are independent, in all that a method would use the trees for.
        unused = {"correlation": "none", "neighbor_words": 0.0}
        return {name: setting for name, setting in unused.items() if name in defaults}
    return {parameter: value}


def _table(parameter: str, choice: Choice, variants: Sequence[Variant], rows: Sequence[Row]) -> Printed:
    figures = Figures(choice, rows)
    columns = [[parameter, *(variant.label for variant in variants)]]
    for corpus in choice.corpora:
        for bits in choice.bits:
            columns.append([f"{corpus}, {bits} bits", *figures.compared(corpus, bits, variants)])
    about = f"Method {choice.methods[0]}, a row for each value of {parameter}."
    return Printed(heading(choice, about), [Table.of_columns(columns)])
