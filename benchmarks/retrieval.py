"""Searches by judged queries: hybrid beside words, codes, bm25s, TF-IDF and LSA, at several code lengths.

Each folder has the layout of BEIR. bm25s uses Snowball stems and its English stop words; LSA has as many
dimensions as codes have bits. Differences come with the interval of a paired bootstrap over queries. Prints
JSON. Needs bm25s (pip install bm25s).

    python -m benchmarks.retrieval ir/cranfield ir/npl ir/med ir/cisi > results/retrieval.json
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.machine import facts
from snuh.collection import Collection
from snuh.corpus import open_source
from snuh.corpus.beir import JudgedQueries, read_judged
from snuh.evaluation import evaluate_search
from snuh.hasher import TextHasher
from snuh.metrics import RankingQuality, paired_interval

RANKED = 1_000
MEASURES = [field.name for field in fields(RankingQuality)]
RankMany = Callable[[list[str]], Sequence[Sequence[str]]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--bits", type=int, nargs="+", default=[16, 32, 64, 128])
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    results: list[dict[str, Any]] = []
    for folder in options.folders:
        judged = read_judged(folder)
        source = open_source(folder)
        ids, texts = zip(*((document.id, document.text) for document in source), strict=True)
        bm25 = evaluate_search(rank_by_bm25s(ids, texts), judged)
        add(results, folder.name, "bm25s", None, bm25, bm25)
        for bits in options.bits:
            hasher = TextHasher(bits=bits, seed=options.seed).fit_source(source)
            for name, rank in rank_by_rows(hasher, ids, texts, dimensions=bits).items():
                add(results, folder.name, name, bits, evaluate_search(rank, judged), bm25)
            for name, found in search_collection(hasher, source, judged).items():
                add(results, folder.name, name, bits, found, bm25)
    json.dump({"machine": facts(), "results": results, "means": means(results)}, sys.stdout, indent=2)
    print()


def add(
    results: list[dict[str, Any]],
    corpus: str,
    name: str,
    bits: int | None,
    found: dict[str, RankingQuality],
    bm25: dict[str, RankingQuality],
) -> None:
    """Append the means of a contender, and its differences to bm25s."""
    row: dict[str, Any] = {"corpus": corpus, "search": name, "bits": bits, "queries": len(found)}
    for measure in MEASURES:
        values = [asdict(quality)[measure] for quality in found.values()]
        differences = [
            value - asdict(bm25[query])[measure] for query, value in zip(found, values, strict=True)
        ]
        row[measure] = round(float(np.mean(values)), 4)
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


def search_collection(hasher: TextHasher, source: Any, judged: JudgedQueries) -> dict[str, Any]:
    """Evaluate the modes of a collection."""
    found = {}
    with TemporaryDirectory() as folder, Collection.create(f"{folder}/c", hasher.model_) as collection:  # type: ignore[arg-type]
        collection.add(source)
        modes: dict[str, dict[str, Any]] = {
            "hybrid": {"mode": "hybrid"},
            "words": {"mode": "words"},
            "codes": {"mode": "codes"},
            "asymmetric": {"rerank": "asymmetric", "shortlist": len(collection)},
        }
        for name, options in modes.items():

            def rank_many(queries: list[str], options: dict[str, Any] = options) -> list[list[str]]:
                hits = collection.search_many(queries, k=RANKED, characters=1, **options)
                return [[hit.document.id for hit in one] for one in hits]

            found[name] = evaluate_search(rank_many, judged)
    return found


def rank_by_rows(
    hasher: TextHasher, ids: Sequence[str], texts: Sequence[str], *, dimensions: int
) -> dict[str, RankMany]:
    """Return cosine rankings of the model's own TF-IDF rows, and of their LSA vectors."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.preprocessing import normalize

    assert hasher.model_ is not None and hasher.model_.features is not None
    features = hasher.model_.features
    rows = features.transform(texts)
    svd = TruncatedSVD(dimensions, random_state=0).fit(rows)
    vectors = normalize(svd.transform(rows))

    def by_tfidf(queries: list[str]) -> list[list[str]]:
        return best(np.asarray((features.transform(queries) @ rows.T).todense()), ids)

    def by_lsa(queries: list[str]) -> list[list[str]]:
        return best(normalize(svd.transform(features.transform(queries))) @ vectors.T, ids)

    return {"TF-IDF": by_tfidf, "LSA": by_lsa}


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


def best(scores: np.ndarray, ids: Sequence[str]) -> list[list[str]]:
    """Return the ids with the highest scores of each row."""
    order = np.argsort(-scores, axis=1, kind="stable")[:, :RANKED]
    return [[ids[index] for index in row] for row in order.tolist()]


if __name__ == "__main__":
    main()
