"""The command line: results on stdout, everything else on stderr."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast

EXIT_OUTPUT = 74  # EX_IOERR of sysexits.h


def main() -> None:
    """Run the command line.

    The exit code is 0 for success, 1 for a bug, 2 for a user error, and 74 if the command was completed but
    its results could not be written to standard output.
    """
    from snuh.cli.app import app

    # A closed pipe, as in "snuh methods | head", ends the command without a traceback.
    if hasattr(signal, "SIGPIPE"):  # not on Windows
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    with _guard_streams():
        app()


# Standard streams that are closed, full, or in an encoding that lacks characters.


class _OutputError(Exception):
    """Standard output cannot be written to."""


class _Output:
    """Standard output whose failures are distinguished from those of other files."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:  # Any: everything else is that of the stream
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError as error:
            raise _OutputError(error.strerror) from error

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            raise _OutputError(error.strerror) from error


@contextmanager
def _guard_streams() -> Iterator[None]:
    """Make missing streams harmless, replace what an encoding lacks, and report a full disk in one line."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the caller
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace" if name == "stdout" else "backslashreplace")
    output = sys.stdout
    sys.stdout = cast(TextIO, _Output(output))
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except _OutputError as error:
        sys.stderr.write(f"snuh: done, but the results could not be written to standard output: {error}\n")
        with suppress(OSError):  # or Python reports once more what it cannot flush
            os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())
        sys.exit(EXIT_OUTPUT)
    finally:
        sys.stdout = output
