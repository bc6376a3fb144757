"""Approximate search: snuh's IVF against faiss's IndexBinaryIVF and usearch's HNSW at equal recall.

    SNUH_DATA=... python -m benchmarks.ivf [--rows 1000000] [--corpora arxiv100k]

All use one thread and the same codes: clustered ones (see benchmarks.search), and those of an ITQ model of
each corpus. Each side reads the fewest lists (HNSW: keeps the fewest candidates) that reach a recall of 0.99
at k = 100. Queries alternate between the contenders. Times are CPU milliseconds per query, which other work
on the machine disturbs less than wall time. Neither IndexBinaryIVF nor usearch's Python API filters inside
the search, so both fetch more rows than k, and the filter is applied afterwards.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["NUMBA_NUM_THREADS"] = "1"

import faiss
import numpy as np
from numpy.typing import NDArray
from usearch.index import Index

import snuh
import snuh.index.flat
from benchmarks.machine import facts
from benchmarks.search import BITS, Codes, clustered_codes, rounded
from snuh.corpus import open_source
from snuh.index import scan_many
from snuh.index.ivf import IVF

K, QUERIES, TARGET_RECALL = 100, 200, 0.99
MAX_HNSW_FETCHED = 5_000  # rows per query, beyond which HNSW takes too long
MAX_HNSW_ROWS = 200_000  # beyond it usearch takes too long to build
EFFORTS = sorted({round(1.2**power) for power in range(50)})  # lists to probe, or HNSW's expansion

Search = Callable[[Codes, int], tuple[NDArray[Any], NDArray[Any]]]  # (query, effort) -> rows, distances


@dataclass(frozen=True)
class Contender:
    """A built index: its searches without and with a filter, and what it cost."""

    search: Search
    filtered: Callable[[NDArray[np.bool_]], Search]
    efforts: list[int]
    build_cpu_seconds: float
    extra_bytes_per_document: float
    open_milliseconds: float


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="*", default=[1_000_000])
    parser.add_argument("--corpora", nargs="*", default=["arxiv100k"])
    parser.add_argument("--out", type=Path, default=Path("results/ivf.json"))
    options = parser.parse_args()
    snuh.index.flat.usable_processors = lambda: 1
    faiss.omp_set_num_threads(1)
    result: dict[str, Any] = {"bits": BITS, "k": K, "queries": QUERIES, "target_recall": TARGET_RECALL}
    worlds = {corpus: corpus_codes(corpus) for corpus in options.corpora}
    worlds |= {f"clustered, {rows:,}": clustered_codes(rows) for rows in options.rows}
    for name, codes in worlds.items():
        result[name] = compare(codes)
        print(json.dumps({name: result[name]}, indent=2), flush=True)
        options.out.write_text(json.dumps({**result, "machine": facts()}, indent=2) + "\n")


def corpus_codes(name: str) -> Codes:
    """Encode a corpus with an ITQ model trained on it: the fastest of the learnt methods."""
    texts = [document.text for document in open_source(name)]
    return snuh.TextHasher(method="itq", bits=BITS).fit(texts).encode(texts)


def compare(codes: Codes) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    queries = codes[np.sort(rng.choice(len(codes), QUERIES, replace=False))]
    contenders = {"snuh": build_snuh(codes), "faiss": build_faiss(codes)}
    if len(codes) <= MAX_HNSW_ROWS:
        contenders["usearch"] = build_usearch(codes)
    masks = {f"{percent} % allowed": rng.random(len(codes)) < percent / 100 for percent in (50, 10, 1)}
    measured = {
        "no filter": measure({name: (c.search, c.efforts) for name, c in contenders.items()}, queries, codes)
    }
    for name, mask in masks.items():
        searches = {
            contender: (c.filtered(mask), c.efforts)
            for contender, c in contenders.items()
            if contender != "usearch" or K / mask.mean() <= MAX_HNSW_FETCHED
        }
        measured[name] = measure(searches, queries, codes, allowed=mask)
    return {
        "documents": len(codes),
        "n_lists": max(1, round(2 * len(codes) ** 0.5)),
        "distinct codes": len(np.unique(codes, axis=0)),
        **measured,
        "build cpu seconds": rounded({name: c.build_cpu_seconds for name, c in contenders.items()}),
        "bytes per document beside the codes": rounded(
            {name: c.extra_bytes_per_document for name, c in contenders.items()}, digits=1
        ),
        "milliseconds to open": rounded({name: c.open_milliseconds for name, c in contenders.items()}),
    }


def build_snuh(codes: Codes) -> Contender:
    IVF.build(codes[:1000]).search(codes[0], codes[:1000], k=K, n_probe=1)  # compiles
    seconds, ivf = cpu_seconds(lambda: IVF.build(codes))
    size = sum(array.nbytes for array in ivf.arrays().values())

    def search(allowed: NDArray[np.bool_] | None) -> Search:
        def run(query: Codes, n_probe: int) -> tuple[NDArray[Any], NDArray[Any]]:
            result = ivf.search(query, codes, k=K, n_probe=n_probe, allowed=allowed)
            return result.rows, result.distances

        return run

    with tempfile.TemporaryDirectory() as folder:
        for name, array in ivf.arrays().items():
            np.save(f"{folder}/{name}.npy", array)
        opened = fastest_milliseconds(
            lambda: IVF.from_arrays({name: np.load(f"{folder}/{name}.npy") for name in ivf.arrays()})
        )
    efforts = [effort for effort in EFFORTS if effort <= len(ivf.centroids)]
    return Contender(search(None), search, efforts, seconds, size / len(codes), opened)


def build_faiss(codes: Codes) -> Contender:
    n_lists = max(1, round(2 * len(codes) ** 0.5))  # as many as snuh's
    rng = np.random.default_rng(0)
    sample = codes[np.sort(rng.choice(len(codes), min(len(codes), 64 * n_lists), replace=False))]
    quantizer = faiss.IndexBinaryFlat(BITS)
    ivf = faiss.IndexBinaryIVF(quantizer, BITS, n_lists)

    def build() -> None:
        ivf.train(sample)
        ivf.add(codes)

    seconds, _ = cpu_seconds(build)

    def search(allowed: NDArray[np.bool_] | None) -> Search:
        fetched = K if allowed is None else min(len(codes), round(1.2 * K / allowed.mean()))

        def run(query: Codes, n_probe: int) -> tuple[NDArray[Any], NDArray[Any]]:
            ivf.nprobe = n_probe
            distances, rows = ivf.search(query[None], fetched)
            return keep_allowed(rows[0], distances[0], allowed)

        return run

    with tempfile.TemporaryDirectory() as folder:
        faiss.write_index_binary(ivf, f"{folder}/index")
        size = Path(folder, "index").stat().st_size
        opened = fastest_milliseconds(lambda: faiss.read_index_binary(f"{folder}/index", faiss.IO_FLAG_MMAP))
    efforts = [effort for effort in EFFORTS if effort <= n_lists]
    return Contender(search(None), search, efforts, seconds, size / len(codes), opened)


def build_usearch(codes: Codes) -> Contender:
    index = Index(ndim=BITS, metric="hamming", dtype="b1")
    seconds, _ = cpu_seconds(lambda: index.add(np.arange(len(codes)), codes, threads=1))

    def search(allowed: NDArray[np.bool_] | None) -> Search:
        fetched = K if allowed is None else min(len(codes), round(1.2 * K / allowed.mean()))

        def run(query: Codes, expansion: int) -> tuple[NDArray[Any], NDArray[Any]]:
            index.expansion_search = expansion
            matches = index.search(query, max(fetched, 1), threads=1)
            return keep_allowed(matches.keys.astype(np.int64), matches.distances, allowed)

        return run

    with tempfile.TemporaryDirectory() as folder:
        index.save(f"{folder}/index")
        size = Path(folder, "index").stat().st_size
        opened = fastest_milliseconds(lambda: Index.restore(f"{folder}/index", view=True))
    efforts = [effort for effort in EFFORTS if 64 <= effort <= 4096]
    return Contender(search(None), search, efforts, seconds, size / len(codes), opened)


def keep_allowed(
    rows: NDArray[Any], distances: NDArray[Any], allowed: NDArray[np.bool_] | None
) -> tuple[NDArray[Any], NDArray[Any]]:
    valid = rows >= 0
    if allowed is not None:
        valid &= allowed[rows]
    return rows[valid][:K], distances[valid][:K]


def measure(
    searches: dict[str, tuple[Search, list[int]]],
    queries: Codes,
    codes: Codes,
    *,
    allowed: NDArray[np.bool_] | None = None,
) -> dict[str, Any]:
    """Choose each contender's effort for the target recall, then time all of them, query by query."""
    exact = scan_many(queries, codes, k=K, allowed=allowed)
    measured: dict[str, dict[str, Any]] = {}
    for name, (search, efforts) in searches.items():
        for effort in efforts:
            results = [search(query, effort) for query in queries]
            recall = float(
                np.mean(
                    [
                        (distances <= found.distances[-1]).sum() / K
                        for (_, distances), found in zip(results, exact, strict=True)
                    ]
                )
            )
            if recall >= TARGET_RECALL:
                break
        in_row_order = sum(
            np.array_equal(rows, found.rows) for (rows, _), found in zip(results, exact, strict=True)
        )
        complete = sum(
            np.array_equal(distances, found.distances)
            for (_, distances), found in zip(results, exact, strict=True)
        )
        measured[name] = {"effort": effort, "recall": round(recall, 4)}
        measured[name]["ties in row order"] = f"{in_row_order} of {complete} complete results"
    spent: dict[str, list[float]] = {name: [] for name in searches}
    for query in np.concatenate([queries[:5], queries]):
        for name, (search, _) in searches.items():
            effort = measured[name]["effort"]
            spent[name].append(cpu_seconds(lambda run=search, query=query, n=effort: run(query, n))[0])
    times = {name: median(seconds[5:]) for name, seconds in spent.items()}
    for name, seconds in times.items():
        measured[name]["cpu milliseconds per query"] = round(1e3 * seconds, 4)
    ratios = {name: times["snuh"] / seconds for name, seconds in times.items() if name != "snuh"}
    return {**measured, "snuh over": rounded(ratios)}


def cpu_seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    value = work()
    return time.process_time() - start, value


def fastest_milliseconds(work: Callable[[], Any], *, rounds: int = 5) -> float:
    def seconds() -> Iterable[float]:
        for _ in range(rounds):
            start = time.perf_counter()
            work()
            yield time.perf_counter() - start

    return 1e3 * min(seconds())


if __name__ == "__main__":
    main()
