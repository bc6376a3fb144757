"""How long `snuh --help` takes, beside an interpreter that does nothing; processes alternate.

python -m benchmarks.startup [--rounds 9]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time

from benchmarks.machine import facts

CONTENDERS = {"help": ["-m", "snuh.cli", "--help"], "nothing": ["-c", "pass"]}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    seconds: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    for _ in range(rounds):
        for name, arguments in CONTENDERS.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
            seconds[name].append(time.perf_counter() - start)
    middle = {name: round(statistics.median(times), 3) for name, times in seconds.items()}
    print(json.dumps({"seconds": middle, "machine": facts()}, indent=2))


if __name__ == "__main__":
    main()
