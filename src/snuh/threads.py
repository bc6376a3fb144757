"""How many threads this process may use."""

from __future__ import annotations

import os


def usable_processors() -> int:
    """Return the number of processors this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS and Windows
    return len(affinity(0)) if affinity else os.cpu_count() or 1
