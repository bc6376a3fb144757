"""Script for `spark-submit`: runs `snuh spark` with the arguments that follow."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    if Path(sys.path[0]) == Path(__file__).parent:
        del sys.path[0]  # the script's folder: its modules would shadow others of the same name
    from snuh.cli import main

    sys.argv.insert(1, "spark")
    main()
