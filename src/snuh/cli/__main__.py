"""`python -m snuh.cli`, the same as `snuh`."""

from snuh.cli import main

main()
