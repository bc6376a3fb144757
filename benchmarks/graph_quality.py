"""Precision of codes trained with the exact and with the approximate neighbour graph, seed by seed.

SNUH_DATA=... python -m benchmarks.graph_quality [--corpus agnews] [--bits 64] [--seeds 3] [--method NAME]
"""

from __future__ import annotations

import argparse
import json
import sys
from statistics import mean, stdev
from typing import Any

from benchmarks.machine import facts
from snuh.corpus import open_source
from snuh.features import TfidfFeatures
from snuh.methods import make
from snuh.metrics import precision_at_k

SEARCHES = ("exact", "approximate")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", default="agnews")
    parser.add_argument("--bits", type=int, default=64)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--method", default="snuh-plus")
    options = parser.parse_args()
    documents = list(open_source(options.corpus))
    texts = {s: [doc.text for doc in documents if doc.split == s] for s in ("train", "val", "test")}
    labels = {s: [doc.labels for doc in documents if doc.split == s] for s in ("train", "test")}
    features = TfidfFeatures().fit(texts["train"])
    X = {split: features.transform(of_split) for split, of_split in texts.items()}
    runs: list[dict[str, Any]] = []
    for seed in range(options.seeds):
        for search in SEARCHES:
            method = make(options.method, bits=options.bits, seed=seed, parameters={"graph": search})
            method.fit(X["train"], X_val=X["val"])
            codes = [method.transform(X[split]) for split in ("test", "train")]
            precision = precision_at_k(codes[0], labels["test"], codes[1], labels["train"], k=100)
            runs.append({"seed": seed, **method.training_["graph"], "precision at 100": round(precision, 4)})
            print(runs[-1], file=sys.stderr, flush=True)
    by_search = {
        search: [run["precision at 100"] for run in runs if run["search"] == search] for search in SEARCHES
    }
    result = {
        "corpus": options.corpus,
        "method": options.method,
        "bits": options.bits,
        "mean": {search: round(mean(values), 4) for search, values in by_search.items()},
        "spread": {search: round(stdev(values), 4) for search, values in by_search.items()},
        "runs": runs,
        "machine": facts(),
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
