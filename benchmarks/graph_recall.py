"""The approximate neighbour graph: its recall of the exact one, and the CPU seconds of both.

    SNUH_DATA=... python -m benchmarks.graph_recall [ng20 agnews arxiv100k] [--k 20] [--exact]

For each corpus, the graph by words and LSA (that of the default method) and the graph by words alone. Recall
is measured on 500 documents of the training split. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

from benchmarks.graph import training_rows
from benchmarks.machine import facts
from snuh.graph import DensePart, Search, nearest_neighbors
from snuh.training.spectral import fit_lsa

SEARCHES: tuple[Search, ...] = ("approximate", "exact")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpora", nargs="*", default=["ng20", "agnews", "arxiv100k"])
    parser.add_argument("--k", type=int, default=20)
    parser.add_argument("--exact", action="store_true", help="also time the exact search")
    options = parser.parse_args()
    results = [
        result for corpus in options.corpora for result in measure(corpus, options.k, exact=options.exact)
    ]
    print(json.dumps({"k": options.k, "results": results, "machine": facts()}, indent=2))


def measure(corpus: str, k: int, *, exact: bool) -> list[dict[str, Any]]:
    X = training_rows(corpus)
    lsa = DensePart(fit_lsa(X, dims=128, seed=0).unit_values(X), 0.5)
    results = []
    for name, dense_parts in (("words and LSA", [lsa]), ("words", [])):
        few = [DensePart(part.rows[:2000], part.weight) for part in dense_parts]
        result: dict[str, Any] = {"corpus": corpus, "documents": X.shape[0], "similarity": name}
        for search in SEARCHES[: 1 + exact]:
            nearest_neighbors(X[:2000], k=k, dense_parts=few, search=search)  # compiles
            start = time.process_time()
            graph = nearest_neighbors(X, k=k, dense_parts=dense_parts, search=search)
            result[f"{search} cpu_seconds"] = round(time.process_time() - start, 2)
            if graph.recall is not None:
                result["recall"] = round(graph.recall, 4)
        print(result, file=sys.stderr, flush=True)
        results.append(result)
    return results


if __name__ == "__main__":
    main()
