"""Precision@100 on the test split, no labels used before evaluation: one JSON line a finished run, resumable.

    SNUH_DATA=... python -m benchmarks.figures run results/figures.jsonl --corpus ng20 --method snuh-plus
    python -m benchmarks.figures table results/figures.jsonl

`run` leaves out what the file already holds. `table` prints means and deviations over seeds as Markdown.
A corpus by its name is read as text, with this software's own features; NAME.tfidf takes a .mat file's rows.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.machine import facts
from snuh.corpus import MatrixSource, MatrixSplit, open_source
from snuh.features import TfidfFeatures
from snuh.methods import make
from snuh.metrics import evaluate_codes

BITS, SEEDS = (16, 32, 64, 128), (0, 1, 2)
KEY = ("corpus", "method", "bits", "seed", "parameters")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run what is missing")
    run.add_argument("file", type=Path)
    run.add_argument("--corpus", nargs="+", default=["ng20", "reuters", "tmc"])
    run.add_argument("--method", nargs="+", default=["snuh", "snuh-plus"])
    run.add_argument("--bits", nargs="+", type=int, default=list(BITS))
    run.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    run.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="parameters of the method")
    table = commands.add_parser("table", help="print means and deviations")
    table.add_argument("file", type=Path)
    chosen = parser.parse_args()
    if chosen.command == "table":
        print_table(read(chosen.file))
        return
    parameters = dict(parse(setting) for setting in chosen.set)
    done = {key(row) for row in read(chosen.file)}
    for corpus in chosen.corpus:
        for bits in chosen.bits:
            for method in chosen.method:
                for seed in chosen.seeds:
                    wanted = {
                        "corpus": corpus,
                        "method": method,
                        "bits": bits,
                        "seed": seed,
                        "parameters": parameters,
                    }
                    if key(wanted) not in done:
                        append(chosen.file, {**wanted, **measure(corpus, method, bits, seed, parameters)})


def parse(setting: str) -> tuple[str, Any]:
    name, _, value = setting.partition("=")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def measure(corpus: str, method: str, bits: int, seed: int, parameters: dict[str, Any]) -> dict[str, Any]:
    splits = rows_of(corpus)
    start = time.perf_counter()
    estimator = make(method, bits=bits, seed=seed, parameters=parameters)
    estimator.fit(splits["train"].X, X_val=splits["val"].X)
    seconds = time.perf_counter() - start
    codes = {split: estimator.transform(splits[split].X) for split in ("train", "test")}
    scores = evaluate_codes(codes["test"], splits["test"].labels, codes["train"], splits["train"].labels)
    health = scores.health
    return {
        "precision": {str(cutoff): round(value, 5) for cutoff, value in scores.precision.items()},
        "distinct_codes": health.distinct_codes,
        "alive": health.alive,
        "score": estimator.training_["score"],
        "epochs": estimator.training_["epochs"],
        "best_epoch": estimator.training_["best_epoch"],
        "seconds": round(seconds, 1),
        "machine": facts(),
    }


@cache
def rows_of(corpus: str) -> dict[str, MatrixSplit]:
    source = open_source(corpus)
    if isinstance(source, MatrixSource):
        return dict(source.splits)
    by_split: dict[str, list[Any]] = defaultdict(list)
    for doc in source:
        by_split[doc.split or "train"].append(doc)
    features = TfidfFeatures().fit(doc.text for doc in by_split["train"])
    return {
        split: MatrixSplit(
            features.transform(doc.text for doc in docs), [d.id for d in docs], [d.labels for d in docs]
        )
        for split, docs in by_split.items()
    }


def read(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def key(row: dict[str, Any]) -> str:
    return json.dumps([row[name] for name in KEY], sort_keys=True)


def append(file: Path, row: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as lines:
        lines.write(json.dumps(row) + "\n")
    print(row["corpus"], row["method"], row["bits"], row["seed"], row["precision"]["100"], flush=True)


def print_table(rows: list[dict[str, Any]]) -> None:
    cells: dict[tuple[str, str], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        settings = ", ".join(f"{name}={value}" for name, value in row["parameters"].items())
        name = row["method"] + (f" ({settings})" if settings else "")
        cells[row["corpus"], name][row["bits"]].append(row["precision"]["100"])
    lengths = sorted({row["bits"] for row in rows})
    print("| corpus | method | " + " | ".join(f"{bits} bits" for bits in lengths) + " |")
    print("|---|---|" + "---|" * len(lengths))
    for (corpus, name), by_bits in sorted(cells.items()):
        shown = [show(by_bits[bits]) for bits in lengths]
        print(f"| {corpus} | {name} | " + " | ".join(shown) + " |")


def show(values: list[float]) -> str:
    if not values:
        return ""
    spread = f" ± {statistics.stdev(values):.3f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.3f}{spread} ({len(values)})"


if __name__ == "__main__":
    main()
