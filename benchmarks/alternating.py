"""Time contenders that alternate in one process, so that other load affects all of them alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping


def median_seconds(contenders: Mapping[str, Callable[[], object]], *, rounds: int) -> dict[str, float]:
    """Return the median seconds of each contender over the rounds, after a warm-up round."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for round_number in range(rounds + 1):
        for name, run in contenders.items():
            start = time.perf_counter()
            run()
            if round_number:
                seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in seconds.items()}
