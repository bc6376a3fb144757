"""Precision@100 of codes of words, of vectors, and of words joined with vectors.

The split test is searched for in train; labels only evaluate. With `--held-out`, 1,000 documents of train are
searched for in the others instead, as for choosing settings. The vectors are read from
SNUH_DATA/embeddings/NAME.minilm.npy, a row per line of the corpus. Every run is appended to a file of JSON
lines, so that an interrupted measurement continues; the summary is printed as JSON.

| run | trained on | encoded |
|---|---|---|
| floats words, floats vectors | - | nothing: cosine of TF-IDF rows, of vectors |
| itq vectors, itq joined | vectors; joined rows | as trained |
| snuh-plus words | words | words |
| snuh-plus joined | joined rows | queries with and without vector, documents with and without |
| no dropout, word graph, random start | joined rows one part left out | as above |
| vectors as words | joined rows as if all columns were words, as in a first trial | with vector |

    SNUH_DATA=... python -m benchmarks.vectors stackoverflow banking_en --bits 16 64 --seeds 0 1 2
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import facts
from snuh.corpus import Document, open_source
from snuh.features import TfidfFeatures
from snuh.features.vectors import append_columns, check_vectors, join_rows
from snuh.methods import make
from snuh.metrics import precision_at_k

K, HELD_OUT = 100, 1_000
ABLATIONS: dict[str, dict[str, Any]] = {
    "no dropout": {"vector_dropout": 0.0},
    "word graph": {"vector_fraction": 0.0},
    "random start": {"start": "random"},
}
KINDS = (
    "floats words",
    "floats vectors",
    "itq words",
    "itq vectors",
    "itq joined",
    "snuh-plus words",
    "snuh-plus joined",
    *ABLATIONS,
    "vectors as words",
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpora", nargs="+")
    parser.add_argument("--bits", type=int, nargs="+", default=[64])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument(
        "--set", type=json.loads, default={}, metavar="JSON", help="settings of snuh-plus joined, by name"
    )
    parser.add_argument("--runs", type=Path, default=Path("vectors.runs.jsonl"))
    options = parser.parse_args()
    done = [json.loads(line) for line in options.runs.open()] if options.runs.exists() else []
    for name in options.corpora:
        corpus = None
        for seed in options.seeds:
            for bits in options.bits:
                for kind in options.kinds:
                    key = {"corpus": name, "kind": kind}
                    if options.held_out or options.set:
                        key |= {"held_out": options.held_out, "settings": options.set}
                    if not kind.startswith("floats"):
                        key |= {"bits": bits, "seed": seed}
                    if any(key.items() <= run.items() for run in done):
                        continue
                    corpus = corpus or Corpus(name, held_out=options.held_out)
                    started = time.perf_counter()
                    run = key | corpus.measure(kind, bits=bits, seed=seed, settings=options.set)
                    run["seconds"] = round(time.perf_counter() - started, 1)
                    done.append(run)
                    print(run, file=sys.stderr, flush=True)
                    with options.runs.open("a") as file:
                        file.write(json.dumps(run) + "\n")
    json.dump({"means": means(done), "runs": done, "machine": facts()}, sys.stdout, indent=2)
    print()


def means(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the means over seeds."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for run in runs:
        groups[run["corpus"], run["kind"], run.get("bits")].append(run)
    table = []
    for (corpus, kind, bits), group in sorted(groups.items(), key=str):
        measured = {name for run in group for name in run if name.startswith("precision")}
        values = {name: round(float(np.mean([run[name] for run in group])), 4) for name in sorted(measured)}
        table.append({"corpus": corpus, "kind": kind, "bits": bits, "seeds": len(group), **values})
    return table


class Corpus:
    """Rows, vectors and labels of the documents and of the queries."""

    def __init__(self, name: str, *, held_out: bool) -> None:
        documents = list(open_source(name).documents())
        array = np.load(Path(os.environ["SNUH_DATA"]) / "embeddings" / f"{name}.minilm.npy")
        vectors = check_vectors(array, documents=len(documents))
        train = [row for row, document in enumerate(documents) if document.split == "train"]
        queries = [row for row, document in enumerate(documents) if document.split == "test"]
        if held_out:
            random.Random(0).shuffle(train)
            queries, train = train[:HELD_OUT], train[HELD_OUT:]
        self.features = TfidfFeatures().fit(documents[row].text for row in train)
        self.train, self.queries = (
            Part([documents[row] for row in rows], vectors[rows], self.features) for rows in (train, queries)
        )

    def measure(self, kind: str, *, bits: int, seed: int, settings: dict[str, Any]) -> dict[str, float]:
        """Return the precisions of a kind of run; `settings` are those of joined rows."""
        train, queries = self.train, self.queries
        if kind.startswith("floats"):
            part = kind.split()[1]
            cosines = getattr(queries, part) @ getattr(train, part).T
            return {
                "precision": precision_of_cosines(
                    np.asarray(cosines.todense() if part == "words" else cosines),
                    queries.labels,
                    train.labels,
                )
            }
        method, part = "snuh-plus", "joined"
        if kind.startswith(("itq", "snuh-plus")):
            method, part = kind.split()
        estimator = make(method, bits=bits, seed=seed)
        if method == "snuh-plus" and part == "joined":
            for name, value in {**settings, **ABLATIONS.get(kind, {})}.items():
                setattr(estimator, name, value)
        reads_vectors = part == "joined" and kind != "vectors as words"
        dims = train.vectors.shape[1] if reads_vectors else 0
        estimator.fit(getattr(train, part), vector_dims=dims)
        codes, query_codes = (estimator.transform(getattr(side, part)) for side in (train, queries))

        def precision(query_codes: Any, codes: Any) -> float:
            return round(precision_at_k(query_codes, queries.labels, codes, train.labels, k=K), 4)

        measured = {"precision": precision(query_codes, codes)}
        if reads_vectors:
            alone, queries_alone = (
                estimator.transform(append_columns(side.words, dims)) for side in (train, queries)
            )
            measured["precision_queries_without"] = precision(queries_alone, codes)
            measured["precision_all_without"] = precision(queries_alone, alone)
        return measured


class Part:
    """Documents as rows of words, vectors, and both joined."""

    def __init__(self, documents: list[Document], vectors: Any, features: TfidfFeatures) -> None:
        self.labels = [document.labels for document in documents]
        self.words = features.transform(document.text for document in documents)
        self.vectors = vectors
        self.joined = join_rows(self.words, vectors)


def precision_of_cosines(cosines: Any, query_labels: Any, labels: Any) -> float:
    """Return the mean precision of the K documents with the largest cosine."""
    best = np.argpartition(-cosines, K, axis=1)[:, :K]
    names = [set(of_document) for of_document in labels]
    hits = [bool(names[row] & set(own)) for own, rows in zip(query_labels, best, strict=True) for row in rows]
    return round(float(np.mean(hits)), 4)


if __name__ == "__main__":
    main()
