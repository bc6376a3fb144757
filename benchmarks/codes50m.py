"""50 million clustered codes on one machine: memory, build and query time of exact search and of lists.

    python -m benchmarks.codes50m [--rows 50000000] [--lists 2048] [--queries 100] [--threads 1]

The codes lie around planted centres (see benchmarks.search). Fewer lists than usual build faster and are read
longer. Prints JSON; CPU seconds are of all threads.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

import snuh.index.flat
from benchmarks.machine import facts
from benchmarks.search import clustered_codes
from snuh.index import scan
from snuh.index.ivf import IVF, choose_probes

BITS, K, WANTED, SAMPLE = 64, 100, 0.99, 50


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--lists", type=int, help="twice the root of the rows by default")
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--threads", type=int, default=1)
    chosen = parser.parse_args()
    snuh.index.flat.usable_processors = lambda: chosen.threads
    result: dict[str, Any] = {"bits": BITS, "k": K, "threads": chosen.threads}
    made, codes = timed(lambda: clustered_codes(chosen.rows))
    note(result, "codes", {"rows": len(codes), "megabytes": codes.nbytes >> 20, "making": made})
    rng = np.random.default_rng(1)
    queries = codes[np.sort(rng.choice(len(codes), chosen.queries, replace=False))]
    scan(queries[0], codes[:1000], k=K)  # compiles
    times = [timed(lambda query=query: scan(query, codes, k=K))[0] for query in queries[:20]]
    note(result, "exact query", middle(times))
    built, clusters = timed(lambda: IVF.build(codes, lists=chosen.lists))
    size = sum(array.nbytes for array in clusters.arrays().values())
    note(result, "lists", {"lists": len(clusters.centroids), "build": built, "megabytes": size >> 20})
    probes, recall = choose_probes(clusters, codes, k=K, wanted=WANTED, sample=SAMPLE)
    times = [
        timed(lambda query=query: clusters.search(query, codes, k=K, probes=probes))[0] for query in queries
    ]
    note(result, "lists query", {"probes": probes, "recall": round(recall, 4), **middle(times)})
    print(json.dumps({**result, "machine": facts()}, indent=2))


def timed(work: Callable[[], Any]) -> tuple[dict[str, float], Any]:
    cpu, start = time.process_time(), time.perf_counter()
    found = work()
    spent = {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - cpu}
    return {name: round(value, 5) for name, value in spent.items()}, found


def middle(times: list[dict[str, float]]) -> dict[str, float]:
    return {name: round(median(one[name] for one in times), 5) for name in times[0]} | {
        f"least {name}": min(one[name] for one in times) for name in times[0]
    }


def note(result: dict[str, Any], name: str, found: dict[str, Any]) -> None:
    """Keep what was found, with the most memory that the process has had so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    result[name] = {**found, "peak_megabytes_so_far": peak}
    print(name, result[name], file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
