"""Encoding texts to codes against scikit-learn's TF-IDF alone.

Every contender has a vocabulary of the same size. "snuh codes" is the whole encoding: the analyzer with and
without stemming, TF-IDF rows, a linear encoder of 64 bits, packed. "scikit-learn rows" are TF-IDF rows only:
of words, or of pairs of characters (`analyzer="char"`) where the analyzer recognizes Chinese. Contenders
alternate in one process, so that other load affects all of them alike. "first" is the first call of a new
process, when every word is new. Prints JSON; nothing is asserted.

    SNUH_DATA=... python -m benchmarks.text_to_code ng20 agnews reuters thucnews_zh
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from benchmarks.machine import facts
from snuh.encoder import Encoder, Layer
from snuh.features import TfidfFeatures

BITS = 64

Contender = Callable[[list[str]], Any]  # rows or codes


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpora", nargs="*", default=["ng20", "agnews", "reuters", "thucnews_zh"])
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    results = [measure(name, rounds=options.rounds) for name in options.corpora]
    json.dump({"machine": facts(), "rounds": options.rounds, "results": results}, sys.stdout, indent=2)
    print()


def read_texts(name: str) -> list[str]:
    folder = os.environ.get("SNUH_DATA")
    if folder is None:
        raise SystemExit("set SNUH_DATA to the folder that holds the corpora")
    with gzip.open(Path(folder) / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line in lines]


def measure(name: str, *, rounds: int) -> dict[str, object]:
    texts = read_texts(name)
    start = time.perf_counter()
    features = {"stems": TfidfFeatures().fit(texts)}
    fit_seconds = time.perf_counter() - start
    features["words"] = TfidfFeatures(stemming=False).fit(texts)
    contenders = make_contenders(features, texts)
    first = {}
    for label, contend in contenders.items():
        contend(texts[:100])  # imports and compiled code
        start = time.perf_counter()
        contend(texts)
        first[label] = time.perf_counter() - start
    seconds: dict[str, list[float]] = {label: [] for label in contenders}
    for _ in range(rounds):
        for label, contend in contenders.items():
            start = time.perf_counter()
            contend(texts)
            seconds[label].append(time.perf_counter() - start)
    baseline = seconds["scikit-learn rows"]
    characters = sum(map(len, texts))
    return {
        "corpus": name,
        "documents": len(texts),
        "characters": characters,
        "terms": {kind: len(part.terms) for kind, part in features.items()},
        "fit_seconds": round(fit_seconds, 3),
        "contenders": {
            label: {
                "seconds": round(median(times), 4),
                "first_seconds": round(first[label], 4),
                "megacharacters_per_second": round(characters / median(times) / 1e6, 1),
                # The median of the ratios per round, whose contenders ran under the same load.
                "times_as_fast": round(median(b / t for b, t in zip(baseline, times, strict=True)), 2),
                "times_as_fast_first": round(first["scikit-learn rows"] / first[label], 2),
            }
            for label, times in seconds.items()
        },
    }


def make_contenders(features: dict[str, TfidfFeatures], texts: list[str]) -> dict[str, Contender]:
    generator = np.random.default_rng(0)
    by_characters = "zh" in features["stems"].analyzer.languages
    kind = {"analyzer": "char", "ngram_range": (2, 2)} if by_characters else {"stop_words": "english"}
    vectorizer = TfidfVectorizer(
        max_features=len(features["words"].terms), min_df=2, max_df=0.5, sublinear_tf=True, **kind
    ).fit(texts)
    contenders: dict[str, Contender] = {"scikit-learn rows": vectorizer.transform}
    for name, part in features.items():
        weight = generator.normal(size=(len(part.terms), BITS)).astype(np.float32)
        layer = Layer(weight, np.zeros(BITS, np.float32), "sigmoid")
        encoder = Encoder((layer,), np.full(BITS, 0.5, np.float32))
        for threads in (None, 1):
            label = f"snuh codes of {name}" + (", 1 thread" if threads else "")
            contenders[label] = make_encode(part, encoder, threads)
    return contenders


def make_encode(features: TfidfFeatures, encoder: Encoder, threads: int | None) -> Contender:
    # From JSON, so that no word is known before the first call.
    fresh = TfidfFeatures.from_json(features.to_json())
    return lambda texts: encoder.encode(fresh.transform(texts, threads=threads))


if __name__ == "__main__":
    main()
