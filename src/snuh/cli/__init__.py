"""The command line: results on stdout, everything else on stderr."""

from __future__ import annotations


def main() -> None:
    """Run the command line.

    The exit code is 0 for success, 1 for a bug, 2 for a user error, and 74 if the command was completed but
    its results could not be written to standard output.
    """
    import signal

    from snuh.cli.app import app
    from snuh.cli.streams import guard_streams

    # A closed pipe, as in "snuh methods | head", ends the command without a traceback.
    if hasattr(signal, "SIGPIPE"):  # not on Windows
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    with guard_streams():
        app()
