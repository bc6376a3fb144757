"""Entry point of `python -m snuh.cli`."""

from snuh.cli import main

main()
