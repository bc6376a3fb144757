"""The methods that learn codes: one literal table, each imported only when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from snuh.errors import InputError, check_arguments, missing_extra, suggest

DEFAULT = "snuh-plus"


@dataclass(frozen=True)
class MethodInfo:
    """What `snuh methods` says about a method, and where its class is."""

    home: str  # "module:Class"
    summary: str
    paper: str
    year: int
    needs_graph: bool
    needs_torch: bool
    cost: str


METHODS: Mapping[str, MethodInfo] = {
    "snuh-plus": MethodInfo(
        home="snuh.methods.snuh_plus:SNUHPlus",
        summary="SNUH with a TF-IDF + LSA graph and codes that also explain their neighbours (default)",
        paper="this software, after Ou et al. (ACL 2021)",
        year=2026,
        needs_graph=True,
        needs_torch=True,
        cost="about a minute for 10,000 documents",
    ),
    "snuh": MethodInfo(
        home="snuh.methods.snuh:SNUH",
        summary="Semantics-Neighborhood Unified Hashing, as the paper describes it",
        paper="Ou et al., Integrating Semantics and Neighborhood Information ... (ACL 2021)",
        year=2021,
        needs_graph=True,
        needs_torch=True,
        cost="about half a minute for 10,000 documents",
    ),
}


def info(name: str) -> MethodInfo:
    """Return a method's row of the table; InputError names the nearest where there is none."""
    if name not in METHODS:
        known = ", ".join(METHODS)
        raise InputError(f'unknown method "{name}"{suggest(name, METHODS)}: known methods are {known}')
    return METHODS[name]


def method_class(name: str) -> type[Any]:  # a HashingEstimator; importing it here would import scikit-learn
    """Import a method's estimator class; MissingExtraError where training is not installed."""
    module, class_name = info(name).home.split(":")
    try:
        found: type[Any] = getattr(import_module(module), class_name)
    except ModuleNotFoundError as error:
        raise missing_extra(error) from None
    return found


def make(name: str, *, bits: int, seed: int, parameters: Mapping[str, Any] | None = None) -> Any:
    """Build an estimator by name; InputError suggests the nearest name for an unknown parameter."""
    cls = method_class(name)
    check_arguments(cls, parameters or {}, what=f"{name}'s parameters", but=("n_bits", "seed"))
    return cls(n_bits=bits, seed=seed, **(parameters or {}))
