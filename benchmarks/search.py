"""Exact search for the nearest codes: snuh against faiss, usearch and scikit-learn.

    python -m benchmarks.search [--rows 10000000] [--rounds 9] [--out results/search.json]

Contenders alternate in one process. "Random" codes have no structure; "clustered" ones lie around a few
thousand centroids, as real codes do. Every ratio is snuh's time over the other's: below 1, snuh is faster.
It uses the fastest rounds, because the medians of a busy machine measure its other work, too. Idle threads of
OpenMP sleep (OMP_WAIT_POLICY=passive), which favours faiss there. Masked searches of faiss are timed as well,
and its function that searches an array without copying it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # read once, when faiss is imported

import faiss
import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors
from usearch.index import search as usearch_exact

import snuh.index.flat
from benchmarks.machine import facts
from snuh.index import scan, scan_many

Codes = NDArray[np.uint8]
Run = Callable[[], Any]

BITS, K, BATCH = 64, 100, 32
CENTROIDS = 4096


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--out", type=Path, default=Path("results/search.json"))
    options = parser.parse_args()
    worlds = {"random": random_codes(options.rows), "clustered": clustered_codes(options.rows)}
    result: dict[str, Any] = {"bits": BITS, "k": K, "rows": options.rows, "rounds": options.rounds}
    for name, codes in worlds.items():
        report(result, f"exact, {name}", exact_against_faiss(codes, rounds=options.rounds))
    for rows in (100_000, 1_000_000):
        codes = worlds["clustered"][: min(rows, options.rows)]
        report(result, f"other libraries, {len(codes)} clustered", exact_against_others(codes))
    report(result, "first use", first_use())
    result["machine"] = facts()
    options.out.write_text(json.dumps(result, indent=2) + "\n")


def report(result: dict[str, Any], name: str, measured: dict[str, Any]) -> None:
    result[name] = measured
    print(json.dumps({name: measured}, indent=2), flush=True)


def random_codes(rows: int) -> Codes:
    return np.random.default_rng(0).integers(0, 256, (rows, BITS // 8), dtype=np.uint8)


def clustered_codes(rows: int, *, block: int = 1 << 18) -> Codes:
    """Return codes around centroids, each with its own probability, 2 to 12 %, that a bit is flipped."""
    rng = np.random.default_rng(1)
    centroids = rng.integers(0, 256, (CENTROIDS, BITS // 8), dtype=np.uint8)
    probabilities = rng.uniform(0.02, 0.12, CENTROIDS).astype(np.float32)
    codes = np.empty((rows, BITS // 8), dtype=np.uint8)
    for start in range(0, rows, block):
        assignments = rng.integers(0, CENTROIDS, min(block, rows - start))
        flips = rng.random((len(assignments), BITS), dtype=np.float32) < probabilities[assignments][:, None]
        codes[start : start + block] = centroids[assignments] ^ np.packbits(flips, axis=1)
    return codes


def exact_against_faiss(codes: Codes, *, rounds: int) -> dict[str, Any]:
    flat = faiss.IndexBinaryFlat(BITS)
    flat.add(codes)
    rng = np.random.default_rng(2)
    queries = codes[rng.choice(len(codes), BATCH, replace=False)]
    query = queries[:1]
    single: dict[str, Run] = {}
    batch: dict[str, Run] = {}
    for threads in (1, 2):
        single |= {
            f"faiss, {threads} threads": with_faiss(flat, query, threads),
            f"faiss without a copy, {threads} threads": without_a_copy(query, codes, threads),
            f"snuh, {threads} threads": with_snuh(query, codes, threads),
        }
        batch |= {
            f"faiss, {threads} threads": with_faiss(flat, queries, threads),
            f"snuh, {threads} threads": with_snuh(queries, codes, threads),
        }
    measured = {
        "one query": compared(single, rounds=rounds),
        f"{BATCH} queries": compared(batch, rounds=max(1, rounds // 3)),
        "same rows in the same order": same_rows(flat, queries, codes),
    }
    for percent in (50, 10, 1):
        mask = rng.random(len(codes)) < percent / 100
        masked: dict[str, Run] = {}
        for threads in (1, 2):
            masked |= {
                f"faiss, {threads} threads": with_faiss(flat, query, threads, allowed=mask),
                f"faiss without the mask, {threads} threads": with_faiss(flat, query, threads),
                f"snuh, {threads} threads": with_snuh(query, codes, threads, allowed=mask),
            }
        measured[f"one query, {percent} % allowed"] = compared(masked, rounds=rounds)
    return measured


def compared(contenders: dict[str, Run], *, rounds: int) -> dict[str, Any]:
    """Return times in milliseconds, and snuh's fastest over each contender's with as many threads."""
    times = alternate(contenders, rounds=rounds)
    fastest = {name: min(each) for name, each in times.items()}
    ratios = {
        name: fastest[f"snuh, {threads} threads"] / fastest[name]
        for threads in (1, 2)
        for name in fastest
        if name.endswith(f"{threads} threads") and not name.startswith("snuh")
    }
    return milliseconds(times) | {"snuh over": rounded(ratios), "load": round(os.getloadavg()[0], 1)}


def alternate(contenders: dict[str, Run], *, rounds: int) -> dict[str, list[float]]:
    """Return the seconds of each contender in every round, after a warm-up round."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds + 1):
        for name, run in contenders.items():
            start = time.perf_counter()
            run()
            if number:
                times[name].append(time.perf_counter() - start)
    return times


def milliseconds(times: dict[str, list[float]]) -> dict[str, Any]:
    return {
        "median milliseconds": rounded({name: median(each) for name, each in times.items()}, 1000),
        "fastest milliseconds": rounded({name: min(each) for name, each in times.items()}, 1000),
    }


def with_faiss(index: Any, queries: Codes, threads: int, *, allowed: NDArray[np.bool_] | None = None) -> Run:
    arguments = {}
    if allowed is not None:
        bitmap = np.packbits(allowed, bitorder="little")
        arguments["params"] = faiss.SearchParameters(sel=faiss.IDSelectorBitmap(bitmap))

    def run() -> Any:
        faiss.omp_set_num_threads(threads)
        return index.search(queries, K, **arguments)

    return run


def without_a_copy(queries: Codes, codes: Codes, threads: int) -> Run:
    """Use the function of faiss that searches an array in place; it takes no mask."""

    def run() -> Any:
        faiss.omp_set_num_threads(threads)
        return faiss.knn_hamming(queries, codes, K)

    return run


def with_snuh(queries: Codes, codes: Codes, threads: int, **arguments: Any) -> Run:
    def run() -> Any:
        snuh.index.flat.usable_processors = lambda: threads
        return scan_many(queries, codes, k=K, **arguments)

    return run


def same_rows(flat: Any, queries: Codes, codes: Codes) -> str:
    """Count the queries for which faiss breaks ties as snuh does; its documentation promises no order."""
    rows = flat.search(queries, K)[1]
    ours = scan_many(queries, codes, k=K)
    same = sum(bool((row == result.rows).all()) for row, result in zip(rows, ours, strict=True))
    return f"{same} of {len(queries)}"


def exact_against_others(codes: Codes, *, rounds: int = 3) -> dict[str, Any]:
    query = codes[7:8]
    bits = np.unpackbits(codes, axis=1).astype(bool)
    brute = NearestNeighbors(n_neighbors=K, algorithm="brute", metric="hamming").fit(bits)
    contenders: dict[str, Run] = {
        "snuh": lambda: scan(query[0], codes, k=K),
        "usearch": lambda: usearch_exact(codes, query[0], K, metric="hamming", exact=True, dtype="b1"),
        "scikit-learn": lambda: brute.kneighbors(bits[7:8]),
    }
    expected = scan(query[0], codes, k=K).distances
    distances = {
        "usearch": contenders["usearch"]().distances,
        "scikit-learn": contenders["scikit-learn"]()[0][0] * BITS,
    }
    times = alternate(contenders, rounds=rounds)
    ratios = {name: min(times["snuh"]) / min(times[name]) for name in distances}
    return milliseconds(times) | {
        "snuh over": rounded(ratios, digits=5),
        "same distances": {name: bool(np.allclose(np.sort(d), expected)) for name, d in distances.items()},
    }


def first_use() -> dict[str, float]:
    """Return the seconds of a process's first scan: with compilation, and with kernels cached on disk."""
    code = (
        "import time, numpy as np; from snuh.index import scan; codes = np.zeros((9, 8), dtype=np.uint8); "
        "start = time.perf_counter(); scan(codes[0], codes, k=3); print(time.perf_counter() - start)"
    )
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"NUMBA_CACHE_DIR": folder}
        command = [sys.executable, "-c", code]
        compiling, cached = (
            float(subprocess.run(command, env=environment, capture_output=True, check=True, text=True).stdout)
            for _ in range(2)
        )
    return rounded({"compiling seconds": compiling, "cached seconds": cached})


def rounded(values: dict[str, float], factor: float = 1, *, digits: int = 3) -> dict[str, float]:
    return {name: round(value * factor, digits) for name, value in values.items()}


if __name__ == "__main__":
    main()
