"""50 million clustered codes on one machine: memory, build and query time of exact search and IVF.

    python -m benchmarks.codes50m [--rows 50000000] [--n-lists 2048] [--queries 100] [--threads 1]

The codes lie around planted centroids (see benchmarks.search). With fewer lists than the default the index
builds faster and searches take longer. Prints JSON; CPU seconds are those of all threads.
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
from snuh.index.ivf import IVF, choose_n_probe

BITS, K, TARGET_RECALL, SAMPLE = 64, 100, 0.99, 50


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--n-lists", type=int, help="twice the square root of the rows by default")
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    snuh.index.flat.usable_processors = lambda: options.threads
    result: dict[str, Any] = {"bits": BITS, "k": K, "threads": options.threads}
    made, codes = timed(lambda: clustered_codes(options.rows))
    note(result, "codes", {"rows": len(codes), "megabytes": codes.nbytes >> 20, "generate": made})
    rng = np.random.default_rng(1)
    queries = codes[np.sort(rng.choice(len(codes), options.queries, replace=False))]
    scan(queries[0], codes[:1000], k=K)  # compiles
    times = [timed(lambda query=query: scan(query, codes, k=K))[0] for query in queries[:20]]
    note(result, "exact query", middle(times))
    built, ivf = timed(lambda: IVF.build(codes, n_lists=options.n_lists))
    size = sum(array.nbytes for array in ivf.arrays().values())
    note(result, "ivf", {"n_lists": len(ivf.centroids), "build": built, "megabytes": size >> 20})
    n_probe, recall = choose_n_probe(ivf, codes, k=K, target_recall=TARGET_RECALL, sample=SAMPLE)
    times = [
        timed(lambda query=query: ivf.search(query, codes, k=K, n_probe=n_probe))[0] for query in queries
    ]
    note(result, "ivf query", {"n_probe": n_probe, "recall": round(recall, 4), **middle(times)})
    print(json.dumps({**result, "machine": facts()}, indent=2))


def timed(work: Callable[[], Any]) -> tuple[dict[str, float], Any]:
    cpu, start = time.process_time(), time.perf_counter()
    value = work()
    spent = {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - cpu}
    return {name: round(value, 5) for name, value in spent.items()}, value


def middle(times: list[dict[str, float]]) -> dict[str, float]:
    return {name: round(median(spent[name] for spent in times), 5) for name in times[0]} | {
        f"least {name}": min(spent[name] for spent in times) for name in times[0]
    }


def note(result: dict[str, Any], name: str, values: dict[str, Any]) -> None:
    """Record values with the peak memory of the process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    result[name] = {**values, "peak_megabytes_so_far": peak}
    print(name, result[name], file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
