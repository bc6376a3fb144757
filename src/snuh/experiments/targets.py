"""The targets by name."""

from __future__ import annotations

from snuh.errors import InputError, suggest
from snuh.experiments.appendix import APPENDIX
from snuh.experiments.case_study import CASE_STUDY
from snuh.experiments.efficiency import EFFICIENCY
from snuh.experiments.maps import MAP
from snuh.experiments.score_study import SCORE_STUDY
from snuh.experiments.sweep import sweep
from snuh.experiments.table1 import TABLE1
from snuh.experiments.table2 import TABLE2
from snuh.experiments.target import Target

SWEEPS = (
    sweep("trees", (0, 1, 2, 5, 10, 15, 20)),  # M in the paper's figure; 0: no correlation
    sweep("neighbors", (1, 3, 5, 10, 15, 20)),  # K in the paper's figure
    sweep("tau", (0.05, 0.1, 0.2, 0.5, 1.0)),
    sweep("beta", (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)),
)
TARGETS = {
    target.name: target
    for target in (TABLE1, TABLE2, *SWEEPS, EFFICIENCY, CASE_STUDY, MAP, APPENDIX, SCORE_STUDY)
}


def find_target(name: str) -> Target:
    """Return a target; InputError names the nearest where there is none."""
    if name not in TARGETS:
        known = ", ".join(TARGETS)
        raise InputError(f'unknown target "{name}"{suggest(name, TARGETS)}: known targets are {known}')
    return TARGETS[name]
