"""The search space of each method: one literal table of the values to try for each parameter.

The values of `snuh` are the paper's: learning rate, batch size, tau, trees and neighbours from its section on
experiments, alpha and beta from its supplement. `snuh-plus` adds higher learning rates, like its defaults.
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

OPTIMIZER: Values = {"learning_rate": (0.0005, 0.001, 0.003), "batch_size": (32, 64, 128)}
PAPER: Values = {
    **OPTIMIZER,
    "tau": TENTHS,
    "alpha": TENTHS,
    "beta": HUNDREDTHS,
    "neighbors": UP_TO_20,
    "trees": UP_TO_20,
}
NETWORK: Values = {
    **OPTIMIZER,
    "beta": (0.01, 0.03, 0.1, 0.3, 1.0),
    "depth": (0, 1, 2),
    "dropout": (0.0, 0.1, 0.2, 0.3),
}

SEARCH_SPACES: Mapping[str, Values] = {
    "snuh-plus": {**PAPER, "learning_rate": (0.0005, 0.001, 0.003, 0.006, 0.01)},
    "snuh": PAPER,
    "corrsh": {**NETWORK, "rank": (5, 10, 20)},
    "ammi": {
        "learning_rate": (0.003, 0.01, 0.02, 0.05),
        "batch_size": (32, 64, 128),
        "entropy": (1.5, 2.0, 3.0, 4.0),
        "order": (1, 2, 3, 4),
    },
    "pairrec": {**OPTIMIZER, "dropout": NETWORK["dropout"], "neighbors": (10, 25, 50, 100)},
    "wish": {**NETWORK, "alpha": (0.1, 1.0, 10.0), "dims": (50, 100, 200)},
    "rbsh": {
        **OPTIMIZER,
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
class SearchSpace:
    """The values of each parameter in ascending order, always including the method's default."""

    values: Values
    defaults: Mapping[str, Value]

    @property
    def size(self) -> int:
        """The number of combinations."""
        return math.prod(len(values) for values in self.values.values())

    def to_indices(self, parameters: Mapping[str, Value]) -> dict[str, int]:
        """Return the index of each parameter's value."""
        return {name: values.index(parameters[name]) for name, values in self.values.items()}

    def from_indices(self, indices: Mapping[str, int]) -> dict[str, Value]:
        """Return the parameters at these indices."""
        return {name: values[indices[name]] for name, values in self.values.items()}


def check_tunable(method: str, *, bits: int, seed: int, fixed: Mapping[str, Any]) -> None:
    """Raise InputError, before anything is read, if `fixed` is invalid or leaves nothing to tune."""
    make(method, bits=bits, seed=seed, parameters=fixed).check_parameters()
    if SEARCH_SPACES[method].keys() <= fixed.keys():
        reason = "--set fixes all its parameters" if SEARCH_SPACES[method] else "it has no parameters to tune"
        raise InputError(f"{method} cannot be tuned: {reason}")


def build_search_space(
    method: str, *, bits: int, seed: int, fixed: Mapping[str, Any], docs: int
) -> SearchSpace:
    """Return the search space of a method for n training documents, without the `fixed` parameters."""
    estimator = make(method, bits=bits, seed=seed, parameters=fixed)
    resolved = estimator.get_params() | estimator.derived_parameters(docs)
    table = SEARCH_SPACES[method]
    defaults = {name: resolved[name] for name in table if name not in fixed}
    values = {name: tuple(sorted({*table[name], default})) for name, default in defaults.items()}
    return SearchSpace(values, defaults)
