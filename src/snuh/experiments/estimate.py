"""How long the runs that are left will take, from those that are done."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from snuh.experiments.run import Row, Run


def seconds_left(runs: Sequence[Run], rows: Sequence[Row]) -> float | None:
    """Return the seconds that the runs need one after the other; None where nothing is known yet."""
    timed = [row for row in rows if row["error"] is None]
    return sum(_seconds(run, timed) for run in runs) if timed else None


def _seconds(run: Run, rows: Sequence[Row]) -> float:
    """The median of the runs most like this one."""
    names = ["method", "documents", "corpus", "bits", "parameters"]
    for count in range(len(names), -1, -1):
        alike = [
            row["seconds"]
            for row in rows
            if all(row.get(name) == getattr(run, name) for name in names[:count])
        ]
        if alike:
            return float(statistics.median(alike))
    raise ValueError("there are no rows to learn from")
