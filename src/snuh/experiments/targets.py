"""The targets by name."""

from __future__ import annotations

from snuh.errors import InputError, suggest
from snuh.experiments.table1 import TABLE1
from snuh.experiments.target import Target

TARGETS = {target.name: target for target in (TABLE1,)}


def find_target(name: str) -> Target:
    """Return a target; InputError names the nearest where there is none."""
    if name not in TARGETS:
        known = ", ".join(TARGETS)
        raise InputError(f'unknown target "{name}"{suggest(name, TARGETS)}: known targets are {known}')
    return TARGETS[name]
