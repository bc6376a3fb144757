"""The targets by name."""

from __future__ import annotations

from snuh.errors import InputError, suggest
from snuh.experiments.case_study import CASE_STUDY
from snuh.experiments.efficiency import EFFICIENCY
from snuh.experiments.maps import MAP
from snuh.experiments.precision_tables import APPENDIX, TABLE1, TABLE2
from snuh.experiments.score_study import SCORE_STUDY
from snuh.experiments.sweeps import SWEEPS
from snuh.experiments.target import Target

TARGETS = {
    target.name: target
    for target in (TABLE1, TABLE2, *SWEEPS, EFFICIENCY, CASE_STUDY, MAP, APPENDIX, SCORE_STUDY)
}


def find_target(name: str) -> Target:
    """Return a target; InputError suggests the nearest name if there is none."""
    if name not in TARGETS:
        known = ", ".join(TARGETS)
        raise InputError(f'unknown target "{name}"{suggest(name, TARGETS)}: known targets are {known}')
    return TARGETS[name]
