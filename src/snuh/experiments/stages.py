"""How long each stage of a fit takes, told by its own reports of progress."""

from __future__ import annotations

import time

from snuh.progress import OnProgress, Progress


class StageClock:
    """A callback of progress that passes reports on; the time since the last one belongs to its stage."""

    def __init__(self, on_progress: OnProgress | None) -> None:
        self.seconds: dict[str, float] = {}
        self._on_progress = on_progress
        self._last = time.perf_counter()

    def __call__(self, progress: Progress) -> None:
        """Count the time, and pass the report on."""
        now = time.perf_counter()
        self.seconds[progress.stage] = self.seconds.get(progress.stage, 0.0) + now - self._last
        self._last = now
        if self._on_progress is not None:
            self._on_progress(progress)
