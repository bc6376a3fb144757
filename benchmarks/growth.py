"""The growth of each stage with the number of documents: time, CPU time, memory, and a fitted exponent.

    SNUH_DATA=... python -m benchmarks.growth [--sizes 12500 25000 50000 100000] [--rounds 3]
        [--stages read features LSA graph ...] [--plot growth.svg]

Each stage of each size runs in a process of its own, after a warm-up on few documents, with one thread,
because threads that spin count as CPU time. The sizes alternate in every round, and the median CPU time of
the rounds counts: other load affects wall time more than CPU time. (The minimum would favour small sizes,
whose short runs are more likely to be undisturbed.) The exponent is the slope of log CPU seconds over log
documents. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.growth_plot import draw
from benchmarks.growth_stages import OPTIONAL, STAGES, write_documents
from benchmarks.machine import facts

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
SIZES = (12_500, 25_000, 50_000, 100_000)
WARM_UP = 1_000
MIN_SECONDS, MAX_RUNS = 3.0, 5  # a stage is repeated until it took this much CPU time
LIMIT = 1.2


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", default="arxiv100k")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=list(STAGES), help="all by default")
    parser.add_argument("--plot", type=Path, help="where to write the plot, as SVG")
    parser.add_argument("--stage", choices=STAGES, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.stage:
        print(json.dumps(measure(options.stage, options.folder, options.sizes[0])))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for docs in (WARM_UP, *options.sizes):
            write_documents(options.corpus, folder, docs)
        for stage in options.stages:
            in_process(stage, folder, WARM_UP)
        runs = [
            {"documents": docs, "stage": stage, **in_process(stage, folder, docs)}
            for _ in range(options.rounds)
            for docs in options.sizes
            for stage in options.stages
        ]
    stages = {stage: summarize([run for run in runs if run["stage"] == stage]) for stage in options.stages}
    over = [s for s in options.stages if s not in OPTIONAL and stages[s]["exponent"] > LIMIT]
    result = {
        "corpus": options.corpus,
        "rounds": options.rounds,
        "stages": stages,
        f"above {LIMIT} on the default path": over,
        "machine": facts(),
    }
    print(json.dumps(result, indent=2))
    if options.plot:
        options.plot.write_text(draw(stages), encoding="utf-8")


def in_process(stage: str, folder: Path, docs: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.growth", "--stage", stage, "--folder", str(folder)]
    done = subprocess.run(
        [*command, "--sizes", str(docs)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | ONE_THREAD,
    )
    result: dict[str, Any] = json.loads(done.stdout)
    print(docs, stage, result, file=sys.stderr, flush=True)
    return result


def measure(stage: str, folder: Path, docs: int) -> dict[str, Any]:
    """Run a stage on few documents as a warm-up, then on all of them; short stages several times."""
    prepare = STAGES[stage]
    if docs > WARM_UP:
        prepare(folder / str(WARM_UP))()
    runs: list[dict[str, Any]] = []
    while not runs or (sum(run["cpu_seconds"] for run in runs) < MIN_SECONDS and len(runs) < MAX_RUNS):
        runs.append(_once(prepare(folder / str(docs))))
    return middle(runs)


def middle(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the run with the median CPU time."""
    return sorted(runs, key=lambda run: float(run["cpu_seconds"]))[len(runs) // 2]


def _once(run: Callable[[], dict[str, object] | None]) -> dict[str, Any]:
    cpu, start = cpu_seconds(), time.perf_counter()
    details = run() or {}
    return {
        "seconds": round(time.perf_counter() - start, 3),
        "cpu_seconds": round(cpu_seconds() - cpu, 3),
        "peak_megabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        **details,
    }


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def summarize(runs: list[dict[str, Any]]) -> dict[str, Any]:
    sizes = sorted({run["documents"] for run in runs})
    best = [middle([run for run in runs if run["documents"] == docs]) for docs in sizes]
    return {
        "exponent": slope(sizes, [run["cpu_seconds"] for run in best]),
        "memory_exponent": slope(sizes, [run["peak_megabytes"] for run in best]),
        "by_documents": [{name: run[name] for name in run if name != "stage"} for run in best],
    }


def slope(sizes: list[int], values: list[float]) -> float:
    return round(float(np.polyfit(np.log(sizes), np.log(np.maximum(values, 1e-3)), 1)[0]), 2)


if __name__ == "__main__":
    main()
