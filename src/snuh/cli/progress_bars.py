"""Progress bars on a terminal, with the latest epoch below them."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Self

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from snuh.cli.output import Display


class Bars(Display):
    """One bar per stage, with the remaining time, and the elapsed time once it is done."""

    def __init__(self) -> None:
        self._progress = _BarsAndNote(
            SpinnerColumn(finished_text="[green]✓[/green]"),
            TextColumn("{task.description}"),
            BarColumn(bar_width=32),
            TaskProgressColumn(),
            TimeRemainingColumn(compact=True, elapsed_when_finished=True),
            console=Console(stderr=True),
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._finish_all()
        self._progress.stop()

    def show(self, label: str, done: float) -> None:
        """Update the bar of a stage; a new stage finishes the previous ones."""
        if label not in self._tasks:
            self._finish_all()
            self._tasks[label] = self._progress.add_task(label, total=None)
        if done > 0:
            self._progress.update(self._tasks[label], total=1.0, completed=done)

    def show_epoch(self, label: str, line: str) -> None:
        """Show the epoch in two lines below the bars."""
        self._progress.note = line.replace(" · score ", "\nscore ")

    def _finish_all(self) -> None:
        # A fit may stop early, and a reader may not report 1.0 at its end.
        for task in self._progress.tasks:
            if not task.finished:
                self._progress.update(task.id, total=1.0, completed=1.0)


class _BarsAndNote(Progress):
    note = ""

    def get_renderables(self) -> Iterable[RenderableType]:
        yield self.make_tasks_table(self.tasks)
        if self.note:
            yield Padding(Text(self.note, style="dim"), (0, 0, 0, 2))
