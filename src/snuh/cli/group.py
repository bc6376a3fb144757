"""What happens around every command: errors in one line, warnings in one line, exit codes."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

import typer
from typer.core import TyperGroup

from snuh.cli.plain import harmless
from snuh.errors import SnuhError
from snuh.filters import FilterError

EXIT_USER, EXIT_INTERRUPTED = 2, 130


class CommandGroup(TyperGroup):
    """Runs a command and turns what goes wrong into one line on stderr and an exit code."""

    def invoke(self, ctx: Any) -> Any:  # typer carries its own copy of click's types
        """Run the command; an error that is no SnuhError is a bug and passes with its traceback."""
        try:
            with _warnings_in_one_line():
                return super().invoke(ctx)
        except SnuhError as error:
            say(str(error))
            if isinstance(error, FilterError):
                _show_place(error)
            raise typer.Exit(EXIT_USER) from None
        except KeyboardInterrupt:
            say("interrupted")
            raise typer.Exit(EXIT_INTERRUPTED) from None


def say(message: str) -> None:
    """Write one line to stderr."""
    sys.stderr.write(f"snuh: {harmless(' '.join(message.split()))}\n")
    sys.stderr.flush()


def _show_place(error: FilterError) -> None:
    """Write the filter, and a caret below the character where it cannot be read."""
    sys.stderr.write("".join(f"  {line}\n" for line in error.pointer().splitlines()))


class _OneLineHandler(logging.Handler):
    # Looks sys.stderr up each time: while bars are shown it is one that writes above them.
    def emit(self, record: logging.LogRecord) -> None:
        say(f"{record.levelname.lower()}: {record.getMessage()}")


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    logger = logging.getLogger("snuh")
    handler = _OneLineHandler(logging.WARNING)
    show = warnings.showwarning

    def show_in_one_line(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if category.__module__.partition(".")[0] == "snuh":
            say(f"warning: {message}")
        else:
            show(message, category, filename, lineno, file, line)

    logger.addHandler(handler)
    with warnings.catch_warnings():
        warnings.showwarning = show_in_one_line
        try:
            yield
        finally:
            logger.removeHandler(handler)
