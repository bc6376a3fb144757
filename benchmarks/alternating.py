"""Timing contenders that take turns in one process, so that whatever else the machine does meets them all."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping


def median_seconds(contenders: Mapping[str, Callable[[], object]], *, rounds: int) -> dict[str, float]:
    """Return each contender's median over the rounds, after one round that warms up and is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for round_number in range(rounds + 1):
        for name, run in contenders.items():
            start = time.perf_counter()
            run()
            if round_number:
                seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in seconds.items()}
