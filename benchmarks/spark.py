"""Are codes trained by two workers on Spark as good as those of one, also with a graph found in groups?

SNUH_DATA=... python -m benchmarks.spark [--corpus ng20] [--bits 64] [--seeds 3] > results/spark.json
"""

from __future__ import annotations

import argparse
import json
import sys
import time

import numpy as np

import snuh
from benchmarks.machine import facts
from snuh.encoding import encode_source
from snuh.evaluation import evaluate_splits
from snuh.spark import fit, open_session, read_documents

MASTER = "local-cluster[2,1,1024]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", default="ng20")
    parser.add_argument("--bits", type=int, default=64)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, help="the method's usual number if not given")
    options = parser.parse_args()
    runs = []
    with open_session(MASTER) as session:
        frame = read_documents(session, options.corpus).cache()
        kinds = [(workers, "exact", seed) for seed in range(options.seeds) for workers in (1, 2)]
        kinds += [(2, "approximate", seed) for seed in range(options.seeds)]
        for workers, graph, seed in kinds:
            started = time.perf_counter()
            model = fit(
                frame,
                bits=options.bits,
                seed=seed,
                workers=workers,
                parameters={"graph": graph, "epochs": options.epochs},
            )
            seconds = time.perf_counter() - started
            source = snuh.open_source(options.corpus)
            score = evaluate_splits(encode_source(model, source), name=options.corpus)
            run = {"workers": workers, "graph": graph, "seed": seed, "seconds": round(seconds, 1)}
            runs.append(run | {"precision_at_100": round(score.precision[100], 4)})
            print(runs[-1], file=sys.stderr, flush=True)
    groups = sorted({(run["workers"], run["graph"]) for run in runs})
    summary = {
        f"{workers} workers, {graph}": describe(
            [run["precision_at_100"] for run in runs if (run["workers"], run["graph"]) == (workers, graph)]
        )
        for workers, graph in groups
    }
    about = {"corpus": options.corpus, "bits": options.bits, "epochs": options.epochs}
    print(json.dumps({**about, "summary": summary, "runs": runs, "machine": facts()}, indent=2))


def describe(values: list[float]) -> dict[str, float]:
    return {"mean": round(float(np.mean(values)), 4), "spread": round(float(np.std(values)), 4)}


if __name__ == "__main__":
    main()
