"""The terminal: one file a command; results on stdout, everything else on stderr."""

from __future__ import annotations


def main() -> None:
    """Run the command that the arguments name, and exit: 0 done, 1 a bug, 2 the user's to fix."""
    from snuh.cli.app import app

    app()
