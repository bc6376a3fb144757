"""Precision of codes against the analysis of texts: words or stems, and the size of the vocabulary.

Trains the default method on the split train and searches it with the split val, or with 1,000 documents held
out of train where there is no val; test is not read. Labels only evaluate. Prints JSON.

    SNUH_DATA=... python -m benchmarks.vocabulary ng20 reuters tmc agnews stackoverflow banking_en thucnews_zh
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from typing import Any

from benchmarks.machine import facts
from snuh.corpus import Document, open_source
from snuh.features import TfidfFeatures
from snuh.methods import DEFAULT, make
from snuh.metrics import precision_at_k

K = 100
HELD_OUT = 1_000


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpora", nargs="+")
    sizes_of_terms = [5_000, 10_000, 20_000, 30_000, 50_000, 100_000]
    parser.add_argument("--terms", type=int, nargs="+", default=sizes_of_terms)
    parser.add_argument("--bits", type=int, default=64)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    options = parser.parse_args()
    results = []
    for name in options.corpora:
        train, queries, has_val = split(list(open_source(name).documents()))
        sizes = set()
        for stemming in (False, True):
            for terms in options.terms:
                features = TfidfFeatures(max_terms=terms, stemming=stemming).fit(doc.text for doc in train)
                if (stemming, len(features.terms)) in sizes:
                    continue  # there are no more terms
                sizes.add((stemming, len(features.terms)))
                for seed in options.seeds:
                    row = measure(train, queries, features, bits=options.bits, seed=seed, has_val=has_val)
                    results.append({"corpus": name, "stemming": stemming, "seed": seed, **row})
                    print(results[-1], file=sys.stderr)
    json.dump({"machine": facts(), "bits": options.bits, "results": results}, sys.stdout, indent=2)
    print()


def split(documents: list[Document]) -> tuple[list[Document], list[Document], bool]:
    train = [document for document in documents if document.split == "train"]
    queries = [document for document in documents if document.split == "val"]
    if queries:
        return train, queries, True
    random.Random(0).shuffle(train)
    return train[HELD_OUT:], train[:HELD_OUT], False


def measure(
    train: list[Document],
    queries: list[Document],
    features: TfidfFeatures,
    *,
    bits: int,
    seed: int,
    has_val: bool,
) -> dict[str, Any]:
    X = features.transform([document.text for document in train])
    X_queries = features.transform([document.text for document in queries])
    estimator = make(DEFAULT, bits=bits, seed=seed, parameters={})
    started = time.perf_counter()
    estimator.fit(X, X_val=X_queries if has_val else None)
    seconds = time.perf_counter() - started
    precision = precision_at_k(
        estimator.transform(X_queries),
        [document.labels for document in queries],
        estimator.transform(X),
        [document.labels for document in train],
        k=K,
    )
    return {
        "terms": len(features.terms),
        "languages": list(features.analyzer.languages),
        "precision_at_100": round(precision, 4),
        "fit_seconds": round(seconds, 1),
    }


if __name__ == "__main__":
    main()
