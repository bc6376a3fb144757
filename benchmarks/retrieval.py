"""Searches by judged queries: hybrid beside words, codes, bm25s, TF-IDF and LSA, at several code lengths.

Each folder has the layout of BEIR. bm25s uses Snowball stems and its English stop words. Differences to it
come with the interval of a paired bootstrap over queries. Prints JSON. Needs bm25s (pip install bm25s). The
searches are those of "snuh reproduce search".

    python -m benchmarks.retrieval ir/cranfield ir/npl ir/med ir/cisi > results/retrieval.json
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import facts
from snuh.evaluation import evaluate_search
from snuh.experiments.retrieval import (
    DEFAULT_BITS,
    Found,
    JudgedCorpus,
    RankMany,
    averages,
    best,
    searches,
    train,
)
from snuh.metrics import RankingQuality, paired_interval
from snuh.model import Model, load

MEASURES = [field.name for field in fields(RankingQuality)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--bits", type=int, nargs="+", default=DEFAULT_BITS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--models", type=Path, help="folder in which models are kept for the next run")
    options = parser.parse_args()
    results: list[dict[str, Any]] = []
    for folder in options.folders:
        corpus = JudgedCorpus.read(folder)
        bm25 = evaluate_search(rank_by_bm25s(corpus.ids, corpus.texts), corpus.judged)
        add(results, corpus.name, "bm25s", None, bm25, bm25)
        for bits in options.bits:
            model = trained(corpus, bits=bits, seed=options.seed, models=options.models)
            for name, found in searches(corpus, model):
                add(results, corpus.name, name, bits, found, bm25)
    json.dump({"machine": facts(), "results": results, "means": means(results)}, sys.stdout, indent=2)
    print()


def trained(corpus: JudgedCorpus, *, bits: int, seed: int, models: Path | None) -> Model:
    """Return a model of the corpus, read from a folder if it is there."""
    if models is None:
        return train(corpus, bits=bits, seed=seed)
    path = models / f"{corpus.name}-{bits}" if seed == 0 else models / f"{corpus.name}-{bits}-{seed}"
    if not path.exists():
        train(corpus, bits=bits, seed=seed).save(path)
    return load(path)


def add(
    results: list[dict[str, Any]],
    corpus: str,
    name: str,
    bits: int | None,
    found: Found,
    bm25: Found,
) -> None:
    """Append the means of a contender, and its differences to bm25s."""
    row: dict[str, Any] = {"corpus": corpus, "search": name, "bits": bits, "queries": len(found)}
    row |= averages(found)
    for measure in MEASURES:
        differences = [
            asdict(quality)[measure] - asdict(bm25[query])[measure] for query, quality in found.items()
        ]
        row[f"{measure}_minus_bm25s"] = [round(bound, 4) for bound in paired_interval(differences)]
    results.append(row)
    print(row["corpus"], name, bits, *(f"{row[measure]:.3f}" for measure in MEASURES), file=sys.stderr)


def means(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the means over corpora."""
    rows = []
    for name, bits in dict.fromkeys((row["search"], row["bits"]) for row in results):
        chosen = [row for row in results if (row["search"], row["bits"]) == (name, bits)]
        values = {measure: round(float(np.mean([row[measure] for row in chosen])), 4) for measure in MEASURES}
        rows.append({"search": name, "bits": bits, "corpora": len(chosen), **values})
    return rows


def rank_by_bm25s(ids: Sequence[str], texts: Sequence[str]) -> RankMany:
    """Return the rankings of bm25s."""
    import bm25s
    import Stemmer

    settings: dict[str, Any] = {
        "stopwords": "en",
        "stemmer": Stemmer.Stemmer("english"),
        "show_progress": False,
        "return_ids": False,
    }
    index = bm25s.BM25()
    index.index(bm25s.tokenize(list(texts), **settings), show_progress=False)

    def rank_many(queries: list[str]) -> list[list[str]]:
        tokens = bm25s.tokenize(queries, **settings)
        return best(np.array([index.get_scores(query) for query in tokens]), ids)

    return rank_many


if __name__ == "__main__":
    main()
