"""The terminal: one file a command; results on stdout, everything else on stderr."""

from __future__ import annotations


def main() -> None:
    """Run the command that the arguments name, and exit: 0 done, 1 a bug, 2 the user's to fix."""
    import signal

    from snuh.cli.app import app

    # A reader that goes away, as in "snuh methods | head", ends the command at once and quietly.
    if hasattr(signal, "SIGPIPE"):  # not on Windows
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    app()
