"""What happens around every command: errors, wrong usage and warnings in one line each, exit codes."""

from __future__ import annotations

import logging
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

import typer
from typer.core import TyperCommand, TyperGroup

from snuh.errors import InputError, SnuhError
from snuh.filters import FilterError

# Text that a terminal can show as it is.

CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f]")


def harmless(text: str) -> str:
    """Put a replacement sign for each control character: in a terminal it could move things, or worse."""
    return CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)


EXIT_USER, EXIT_INTERRUPTED = 2, 130
PLACES = ("FILE", "FOLDER", "MODEL", "COLLECTION", "TARGET")  # what the help calls values that name a place

# Any below: typer has its own copy of click's types, or click's, by its version. This one is UsageError.
_UsageError: Any = typer.BadParameter.__base__


class CommandGroup(TyperGroup):
    """Runs a command and turns what goes wrong into one line on stderr and an exit code."""

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """Read the options before the command."""
        with _wrong_usage_in_one_line():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; an error that is no SnuhError is a bug and passes with its traceback."""
        try:
            with _wrong_usage_in_one_line(), _warnings_in_one_line():
                return super().invoke(ctx)
        except SnuhError as error:
            say(str(error))
            if isinstance(error, FilterError):
                _show_place(error)
            raise typer.Exit(EXIT_USER) from None
        except KeyboardInterrupt:
            say("interrupted")
            raise typer.Exit(EXIT_INTERRUPTED) from None


class Command(TyperCommand):
    """A command whose errors of usage name what was given."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options; InputError where the name of a file, folder or collection is empty."""
        given: dict[str, Any] = {}
        try:
            given = self.make_parser(ctx).parse_args(args=list(args))[0]
            self._check_places(ctx, given)
            return super().parse_args(ctx, args)
        except _UsageError as error:
            error.ctx = error.ctx or ctx
            _name_given(error, given)
            raise

    def _check_places(self, ctx: Any, given: dict[str, Any]) -> None:
        # "" would be taken for the folder that we are in.
        for param in self.get_params(ctx):
            values = given.get(param.name or "")
            if param.metavar in PLACES and "" in (values if isinstance(values, list | tuple) else [values]):
                name = param.opts[0] if param.param_type_name == "option" else param.metavar
                raise InputError(f'{name} is empty: expected the name of a {param.metavar.lower()}, got ""')


def say(message: str) -> None:
    """Write one line to stderr."""
    sys.stderr.write(f"snuh: {harmless(' '.join(message.split()))}\n")
    sys.stderr.flush()


def _show_place(error: FilterError) -> None:
    """Write the filter, and a caret below the character where it cannot be read."""
    sys.stderr.write("".join(f"  {line}\n" for line in error.pointer().splitlines()))


def _name_given(error: Any, given: dict[str, Any]) -> None:
    """Add the value to a message that leaves it out, as that of newer versions of typer does."""
    value = given.get(getattr(getattr(error, "param", None), "name", ""))
    if isinstance(value, str) and value not in error.message and "got " not in error.message:
        error.message = f"{error.message.removesuffix('.')}, got {value!r}"


@contextmanager
def _wrong_usage_in_one_line() -> Iterator[None]:
    try:
        yield
    except _UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # shows the help
            raise
        message = error.format_message().removesuffix(".")
        hint = f' (see "{error.ctx.command_path} --help")' if error.ctx else ""
        say(message[:1].lower() + message[1:] + hint)
        raise typer.Exit(EXIT_USER) from None


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


def check_text(value: str | None) -> str | None:
    """Refuse what came in as bytes that are no text: no document could hold it."""
    try:
        (value or "").encode()
    except UnicodeEncodeError:
        raise typer.BadParameter("expected UTF-8 text, got other bytes") from None
    return value
