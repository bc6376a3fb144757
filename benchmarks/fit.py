"""Seconds and peak memory of a whole `snuh fit` from raw text, in a process of its own.

SNUH_DATA=... python -m benchmarks.fit ng20 [arxiv100k ...] [--bits 64] [--method snuh-plus]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.machine import facts


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpora", nargs="+")
    parser.add_argument("--bits", type=int, default=64)
    parser.add_argument("--method", default="snuh-plus")
    options = parser.parse_args()
    results = [measure(corpus, options.bits, options.method) for corpus in options.corpora]
    print(json.dumps({"results": results, "machine": facts()}, indent=2))


def measure(corpus: str, bits: int, method: str) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "model")
        command = [sys.executable, "-m", "snuh.cli", "fit", corpus, "--bits", str(bits)]
        start = time.perf_counter()
        done = subprocess.run(
            [*command, "--method", method, "--out", out, "--json"], check=True, stdout=subprocess.PIPE
        )
        seconds = time.perf_counter() - start
    summary = json.loads(done.stdout)
    return {
        "corpus": corpus,
        "bits": bits,
        "method": method,
        "seconds": round(seconds, 1),
        # The peak of the largest child so far: list the largest corpus last.
        "peak_megabytes": round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024),
        "documents": summary["documents"],
        "epochs": summary["epochs"],
    }


if __name__ == "__main__":
    main()
