"""Encoding texts to codes against scikit-learn's TF-IDF alone.

Every contender has the same vocabulary. "snuh codes" is the whole encoding: TF-IDF rows, a linear encoder of
64 bits, packed. "scikit-learn rows" are TF-IDF rows only. With --others, more implementations of the rows
alone are timed: Hugging Face `tokenizers`, and pure Python. Contenders alternate in one process, so that
other load affects all of them alike. Prints JSON; nothing is asserted.

    SNUH_DATA=... python -m benchmarks.text_to_code ng20 agnews reuters
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
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
from snuh.features.vocabulary import DEFAULT_PATTERN, word_splitter
from snuh.features.weighting import PythonTermCounter, tfidf_weights

BITS = 64

Contender = Callable[[list[str]], Any]  # rows or codes


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpora", nargs="*", default=["ng20", "agnews", "reuters"])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--others", action="store_true", help="time other ways of making the rows too")
    options = parser.parse_args()
    results = [measure(name, rounds=options.rounds, others=options.others) for name in options.corpora]
    json.dump({"machine": facts(), "rounds": options.rounds, "results": results}, sys.stdout, indent=2)
    print()


def read_texts(name: str) -> list[str]:
    folder = os.environ.get("SNUH_DATA")
    if folder is None:
        raise SystemExit("set SNUH_DATA to the folder that holds the corpora")
    with gzip.open(Path(folder) / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line in lines]


def measure(name: str, *, rounds: int, others: bool) -> dict[str, object]:
    texts = read_texts(name)
    start = time.perf_counter()
    features = TfidfFeatures().fit(texts)
    fit_seconds = time.perf_counter() - start
    contenders = make_contenders(features, others=others)
    for contend in contenders.values():
        contend(texts[:100])  # imports, compiled code, first-use tables
    difference = abs(contenders["snuh rows, 1 thread"](texts) - contenders["scikit-learn rows"](texts)).max()
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
        "terms": len(features.terms),
        "fit_seconds": round(fit_seconds, 3),
        "largest_difference_from_scikit_learn": float(difference),
        "contenders": {
            label: {
                "seconds": round(median(times), 4),
                "megacharacters_per_second": round(characters / median(times) / 1e6, 1),
                # The median of the ratios per round, whose contenders ran under the same load.
                "times_as_fast": round(median(b / t for b, t in zip(baseline, times, strict=True)), 2),
            }
            for label, times in seconds.items()
        },
    }


def make_contenders(features: TfidfFeatures, *, others: bool) -> dict[str, Contender]:
    generator = np.random.default_rng(0)
    weight = generator.normal(size=(len(features.terms), BITS)).astype(np.float32)
    encoder = Encoder((Layer(weight, np.zeros(BITS, np.float32), "sigmoid"),), np.full(BITS, 0.5, np.float32))
    vectorizer = TfidfVectorizer(vocabulary=features.terms, sublinear_tf=True)
    vectorizer.idf_ = features.idf
    contenders: dict[str, Contender] = {
        "scikit-learn rows": vectorizer.transform,
        "snuh codes": lambda texts: encoder.encode(features.transform(texts)),
        "snuh codes, 1 thread": lambda texts: encoder.encode(features.transform(texts, threads=1)),
        "snuh rows, 1 thread": lambda texts: features.transform(texts, threads=1),
    }
    if others:
        contenders["tokenizers rows, 1 thread"] = with_tokenizers(features)
        findall = re.compile(DEFAULT_PATTERN).findall
        contenders["findall rows"] = with_words(features, lambda text: findall(text.lower()))
        by_table = word_splitter(DEFAULT_PATTERN, lowercase=True)
        contenders["translate and split rows"] = with_words(features, by_table)
    return contenders


def with_words(features: TfidfFeatures, split: Callable[[str], list[str]]) -> Contender:
    reader = PythonTermCounter(features.terms, split=split)
    return lambda texts: tfidf_weights(reader.count(texts), features.idf, sublinear_tf=True)


def with_tokenizers(features: TfidfFeatures) -> Contender:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

    unknown = len(features.terms)
    vocabulary = {term: number for number, term in enumerate([*features.terms, "[UNK]"])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"\W+"), "removed")

    def count(texts: list[str]) -> list[Any]:
        encoded = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        rows = [np.array(text.ids) for text in encoded]
        return [np.unique(row[row != unknown], return_counts=True) for row in rows]

    return count


if __name__ == "__main__":
    main()
