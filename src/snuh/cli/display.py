"""How far a command has come, on stderr: live bars on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from snuh.progress import EpochReport, Progress

STAGES = {
    "words": "Learning the vocabulary",
    "rows": "Weighing the words",
    "similarity": "Comparing documents",
    "graph": "Finding neighbours",
    "trees": "Drawing trees",
    "training": "Training",
}
SECONDS_BETWEEN_LINES = 10.0
SECONDS_WORTH_A_LINE = 1.0


class Display(ABC):
    """Shows stages by their label; it is itself the callback that a fit takes."""

    @abstractmethod
    def show(self, label: str, done: float) -> None:
        """Show that the stage `label` is done to the share `done`; 0 means it is not known how far."""

    @abstractmethod
    def show_epoch(self, label: str, line: str) -> None:
        """Show one finished epoch."""

    def __call__(self, progress: Progress) -> None:
        """Show what a fit reports."""
        label = STAGES.get(progress.stage, progress.stage)
        if progress.epoch is not None:
            epochs = round(progress.epoch.epoch / progress.done)
            self.show_epoch(label, describe_epoch(progress.epoch, epochs))
        self.show(label, progress.done)

    def stage(self, label: str) -> Callable[[float], None]:
        """Return the callback of one stage."""
        return lambda done: self.show(label, done)


@contextmanager
def display() -> Iterator[Display]:
    """Show progress for the length of the block."""
    if not sys.stderr.isatty():
        yield Lines()
        return
    from snuh.cli.bars import Bars

    with Bars() as bars:
        yield bars


def describe_epoch(report: EpochReport, epochs: int) -> str:
    """Put an epoch into one line."""
    parts = ", ".join(f"{name} {value:.4g}" for name, value in report.parts.items())
    loss = f"loss {sum(report.parts.values()):.2f} ({parts})"
    alive = "" if report.alive else " · codes not alive yet"
    score = f"score {report.score:.4f} (best {report.best_score:.4f})"
    return f"epoch {report.epoch}/{epochs} · {loss} · {score}{alive} · {report.seconds:.1f} s"


@dataclass
class Lines(Display):
    """Plain lines for logs: one an epoch, one at the end of other stages, and more where they take long."""

    clock: Callable[[], float] = time.monotonic
    _started: dict[str, float] = field(default_factory=dict)
    _last_line: float = 0.0
    _has_epochs: set[str] = field(default_factory=set)

    def show(self, label: str, done: float) -> None:
        """Write a line at the end of a stage, and from time to time before it."""
        now = self.clock()
        if label not in self._started:
            self._started[label] = self._last_line = now
        if label in self._has_epochs:
            return
        if done >= 1.0:
            seconds = now - self._started.pop(label)
            if seconds >= SECONDS_WORTH_A_LINE:
                self._write(f"{label}: done in {seconds:.1f} s")
        elif now - self._last_line >= SECONDS_BETWEEN_LINES:
            self._write(f"{label}: {done:.0%}")

    def show_epoch(self, label: str, line: str) -> None:
        """Write a line for every epoch."""
        self._has_epochs.add(label)
        self._write(line)

    def _write(self, line: str) -> None:
        self._last_line = self.clock()
        sys.stderr.write(line + "\n")
        sys.stderr.flush()
