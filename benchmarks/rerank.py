"""The gain and cost of reranking a shortlist: precision@10 and time per query, against Hamming distance.

    SNUH_DATA=... python -m benchmarks.rerank [--corpora ng20 reuters] [--bits 64] [--seeds 0 1 2]

The training documents form a collection, and test documents are the queries, one at a time; a hit is relevant
if it shares a label. Labels are used for nothing else. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.machine import facts
from snuh.collection import Collection
from snuh.corpus import Document, MatrixSource, open_source
from snuh.hasher import TextHasher
from snuh.model import Model

K, QUERIES = 10, 1_000
ORDERS = (None, "asymmetric", "cosine")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpora", nargs="+", default=["ng20", "reuters"])
    parser.add_argument("--bits", nargs="+", type=int, default=[64])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--shortlist", type=int, default=None)
    options = parser.parse_args()
    results = []
    for corpus in options.corpora:
        for bits in options.bits:
            runs = [measure(corpus, bits, seed, options.shortlist) for seed in options.seeds]
            results += [summary(corpus, bits, str(order), runs) for order in ORDERS]
    print(json.dumps({"k": K, "queries": QUERIES, "results": results, "machine": facts()}, indent=2))


def measure(corpus: str, bits: int, seed: int, shortlist: int | None) -> dict[str, tuple[float, float]]:
    """Return precision and milliseconds per query of each order."""
    source = open_source(corpus)
    assert not isinstance(source, MatrixSource)
    hasher = TextHasher(bits=bits, seed=seed).fit_source(source)
    assert hasher.model_ is not None
    test = [document for document in source if document.split == "test"]
    options = np.random.default_rng(0).permutation(len(test))[:QUERIES]
    training = (document for document in source if document.split == "train")
    return search(hasher.model_, training, [test[number] for number in options], shortlist)


def search(
    model: Model, training: object, queries: list[Document], shortlist: int | None
) -> dict[str, tuple[float, float]]:
    precision: dict[str, list[float]] = {str(order): [] for order in ORDERS}
    seconds: dict[str, list[float]] = {str(order): [] for order in ORDERS}
    with tempfile.TemporaryDirectory() as folder, Collection.create(Path(folder) / "c", model) as collection:
        collection.add(training)  # type: ignore[arg-type]
        for query in queries:
            if not collection.search(query.text, k=1, mode="codes"):  # without known words
                continue
            for order in ORDERS:
                start = time.perf_counter()
                more = {"shortlist": shortlist} if order and shortlist else {}
                hits = collection.search(query.text, k=K, mode="codes", rerank=order, **more)  # type: ignore[arg-type]
                seconds[str(order)].append(time.perf_counter() - start)
                right = sum(bool({*hit.document.labels} & {*query.labels}) for hit in hits)
                precision[str(order)].append(right / len(hits))
    return {
        order: (statistics.mean(precision[order]), 1e3 * statistics.median(seconds[order]))
        for order in precision
    }


def summary(
    corpus: str, bits: int, order: str, runs: list[dict[str, tuple[float, float]]]
) -> dict[str, object]:
    precision = [run[order][0] for run in runs]
    return {
        "corpus": corpus,
        "bits": bits,
        "rerank": order,
        "precision": statistics.mean(precision),
        "deviation": statistics.stdev(precision) if len(precision) > 1 else None,
        "milliseconds": statistics.median(run[order][1] for run in runs),
        "cost": statistics.median(run[order][1] / run["None"][1] for run in runs),
    }


if __name__ == "__main__":
    main()
