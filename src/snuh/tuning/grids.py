"""The values that are tried for each parameter, by method: one literal table.

Those of `snuh` are the paper's: its section on experiments has learning rate, batch size, tau, trees and
neighbours, its supplement alpha and beta. The learning rates of `snuh-plus` go further up, like its defaults.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from snuh.errors import InputError
from snuh.methods import make

Value: TypeAlias = int | float
Values: TypeAlias = Mapping[str, tuple[Value, ...]]

TENTHS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
HUNDREDTHS = (0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.1)
UP_TO_20 = tuple(range(1, 21))

STEPS: Values = {"learning_rate": (0.0005, 0.001, 0.003), "batch_size": (32, 64, 128)}
PAPER: Values = {
    **STEPS,
    "tau": TENTHS,
    "alpha": TENTHS,
    "beta": HUNDREDTHS,
    "neighbors": UP_TO_20,
    "trees": UP_TO_20,
}
NETWORK: Values = {
    **STEPS,
    "beta": (0.01, 0.03, 0.1, 0.3, 1.0),
    "depth": (0, 1, 2),
    "dropout": (0.0, 0.1, 0.2, 0.3),
}

GRIDS: Mapping[str, Values] = {
    "snuh-plus": {**PAPER, "learning_rate": (0.0005, 0.001, 0.003, 0.006, 0.01)},
    "snuh": PAPER,
    "corrsh": {**NETWORK, "rank": (5, 10, 20)},
    "ammi": {
        "learning_rate": (0.003, 0.01, 0.02, 0.05),
        "batch_size": (32, 64, 128),
        "entropy": (1.5, 2.0, 3.0, 4.0),
        "order": (1, 2, 3, 4),
    },
    "pairrec": {**STEPS, "dropout": NETWORK["dropout"], "neighbors": (10, 25, 50, 100)},
    "wish": {**NETWORK, "alpha": (0.1, 1.0, 10.0), "dims": (50, 100, 200)},
    "rbsh": {
        **STEPS,
        "beta": (0.0, 0.01, 0.04, 0.1),
        "neighbors": (25, 50, 100, 200),
        "rank": (1.0, 2.0, 5.0, 10.0),
    },
    "bmsh": {**NETWORK, "components": (5, 10, 20, 40)},
    "gmsh": {**NETWORK, "components": (5, 10, 20, 40)},
    "nash": NETWORK,
    "nbrreg": {**NETWORK, "neighbors": (5, 10, 20, 50)},
    "vdsh": NETWORK,
    "itq": {"iterations": (10, 25, 50, 100, 200)},
    "sth": {"neighbors": (5, 10, 25, 50, 100), "penalty": (0.1, 1.0, 10.0, 100.0)},
    "sph": {"tail": (0.0, 0.01, 0.02, 0.05, 0.1)},
    "lsh": {},
}


@dataclass(frozen=True)
class Grid:
    """What to try: for each parameter its values in rising order, the method's default always among them."""

    values: Values
    defaults: Mapping[str, Value]

    @property
    def size(self) -> int:
        """How many combinations there are."""
        return math.prod(len(values) for values in self.values.values())

    def places(self, parameters: Mapping[str, Value]) -> dict[str, int]:
        """Return where in its row each value stands."""
        return {name: values.index(parameters[name]) for name, values in self.values.items()}

    def at(self, places: Mapping[str, int]) -> dict[str, Value]:
        """Return the values at these places."""
        return {name: values[places[name]] for name, values in self.values.items()}


def check_tunable(method: str, *, bits: int, seed: int, fixed: Mapping[str, Any]) -> None:
    """Raise InputError, before anything is read, where what is fixed is wrong or leaves nothing to try."""
    make(method, bits=bits, seed=seed, parameters=fixed).check_parameters()
    if GRIDS[method].keys() <= fixed.keys():
        why = "--set fixes all that could be tried" if GRIDS[method] else "it has no parameter to try"
        raise InputError(f"{method} cannot be tuned: {why}")


def make_grid(method: str, *, bits: int, seed: int, fixed: Mapping[str, Any], docs: int) -> Grid:
    """Return what to try of a method on so many documents; what is `fixed` is not tried."""
    estimator = make(method, bits=bits, seed=seed, parameters=fixed)
    chosen = estimator.get_params() | estimator.derived_parameters(docs)
    defaults = {name: chosen[name] for name in GRIDS[method] if name not in fixed}
    values = {name: tuple(sorted({*GRIDS[method][name], default})) for name, default in defaults.items()}
    return Grid(values, defaults)
