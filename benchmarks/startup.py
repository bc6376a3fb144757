"""The time of `snuh --help` against an interpreter that does nothing; processes alternate.

python -m benchmarks.startup [--rounds 9]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from functools import partial

from benchmarks.alternating import median_seconds
from benchmarks.machine import facts

CONTENDERS = {"help": ["-m", "snuh.cli", "--help"], "nothing": ["-c", "pass"]}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    contenders = {name: partial(start, arguments) for name, arguments in CONTENDERS.items()}
    middle = median_seconds(contenders, rounds=rounds)
    print(json.dumps({"seconds": middle, "machine": facts()}, indent=2))


def start(arguments: list[str]) -> None:
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
