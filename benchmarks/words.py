"""Searches among a million short documents: words alone and hybrid beside bare tantivy and bm25s.

    python -m benchmarks.words [--documents 1000000] [--queries 1000] > results/words.json

The documents are sentences of the abstracts of arxiv100k, documents of agnews, paragraphs and at last
sentences of ng20, up to their number; all from SNUH_DATA. A query has 2 to 5 different words of a random
document, without stop words. The contenders take turns at every query, on one thread. A search of a
collection takes a text and returns 10 hits with their documents; tantivy (stemmed, English) returns the
addresses of 10 documents, bm25s (Snowball stems, numba) their rows. Prints JSON. Needs
pip install tantivy bm25s.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.machine import facts
from snuh._numba import prefer_compiled
from snuh.collection import Collection
from snuh.collection.local.word_table import WORDS_FILE
from snuh.corpus import Document, open_source
from snuh.features.analyzer import Analyzer
from snuh.features.languages import stop_words
from snuh.hasher import TextHasher
from snuh.model import Model

K, MIN_CHARACTERS, MAX_CHARACTERS = 10, 20, 1_000
SENTENCE, PARAGRAPH = re.compile(r"(?<=[.!?])\s+(?=[A-Z])"), re.compile(r"\n\s*\n")
WORD = re.compile(r"[^\W_]+")
TRAINING_DOCUMENTS = 20_000
Search = Callable[[str], object]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument(
        "--adding", type=int, default=100_000, help="documents that are added to empty collections"
    )
    parser.add_argument("--method", default="itq", help="of the codes, trained on 20,000 of the documents")
    parser.add_argument("--folder", type=Path, help="where to keep the indexes; a temporary one by default")
    options = parser.parse_args()
    prefer_compiled()
    texts = short_texts(options.documents)
    queries = draw_queries(texts, options.queries)
    report: dict[str, Any] = {"documents": len(texts), "queries": len(queries), "k": K}
    with TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        model = train(texts[:TRAINING_DOCUMENTS], options.method)
        report["adding"] = rates_of_adding(texts[: options.adding], Path(temporary), model)
        if not (folder / "words").exists():
            add_documents(texts, folder / "words", model, words=True)
        memory = rss()
        with Collection(folder / "words") as collection:
            collection.search(queries[0])
            report["words_bytes_per_document"] = (folder / "words" / WORDS_FILE).stat().st_size / len(texts)
            report["collection_memory_per_document"] = (rss() - memory) / len(texts)
            contenders: dict[str, Search] = {
                "words": lambda text: collection.search(text, k=K, mode="words"),
                "hybrid": lambda text: collection.search(text, k=K),
                "codes": lambda text: collection.search(text, k=K, mode="codes"),
            }
            for name, build in (("tantivy", build_tantivy), ("bm25s", build_bm25s)):
                before, start = rss(), time.perf_counter()
                contenders[name], size = build(texts, folder / name)
                report[name] = {
                    "seconds_to_build": round(time.perf_counter() - start, 1),
                    "bytes_per_document": size / len(texts),
                    "memory_per_document": (rss() - before) / len(texts),
                }
            report["milliseconds"] = measure(contenders, queries)
    json.dump({"machine": facts(), **report}, sys.stdout, indent=2)
    print()


def short_texts(limit: int) -> list[str]:
    """Return short texts of three corpora, shuffled."""
    texts = list(islice(_short_texts(), limit))
    random.Random(0).shuffle(texts)
    return texts


def _short_texts() -> Iterator[str]:
    for name, pattern in (("arxiv100k", SENTENCE), ("agnews", None), ("ng20", PARAGRAPH), ("ng20", SENTENCE)):
        for document in open_source(name):
            for text in [document.text] if pattern is None else pattern.split(document.text):
                if MIN_CHARACTERS <= len(text := " ".join(text.split())) <= MAX_CHARACTERS:
                    yield text


def draw_queries(texts: list[str], count: int) -> list[str]:
    """Return queries of 2 to 5 words of one document each."""
    rng, analyzer = random.Random(1), Analyzer(stop_words=stop_words(["en"]))
    queries: list[str] = []
    while len(queries) < count:
        text = rng.choice(texts)
        words = sorted({text[token.start : token.end] for token in analyzer.tokens(text)})
        if len(words) >= 5:
            queries.append(" ".join(rng.sample(words, rng.randint(2, 5))))
    return queries


def train(texts: list[str], method: str) -> Model:
    """Return a model."""
    model = TextHasher(method, bits=64, seed=0).fit(texts).model_
    assert model is not None
    return model


def rates_of_adding(texts: list[str], folder: Path, model: Model, *, rounds: int = 3) -> dict[str, float]:
    """Return the documents added in a second, with and without an index of words: the median of rounds."""
    rates: dict[str, list[float]] = {"with words": [], "without words": []}
    for number in range(rounds):
        for name in rates:
            start = time.perf_counter()
            add_documents(texts, folder / f"{name} {number}", model, words=name == "with words")
            rates[name].append(len(texts) / (time.perf_counter() - start))
    return {name: round(float(np.median(values))) for name, values in rates.items()}


def add_documents(texts: list[str], folder: Path, model: Model, *, words: bool) -> None:
    """Create a collection of documents."""
    with Collection.create(folder, model, words=words) as collection:
        collection.add(Document(str(number), text) for number, text in enumerate(texts))


def build_tantivy(texts: list[str], folder: Path) -> tuple[Search, int]:
    """Return the search of a bare index, and its size."""
    import tantivy

    folder.mkdir(exist_ok=True)
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("text", stored=False, tokenizer_name="en_stem", index_option="freq")
    index = tantivy.Index(builder.build(), path=str(folder))
    writer = index.writer(heap_size=200_000_000, num_threads=1)
    for text in texts:
        writer.add_document(tantivy.Document(text=text))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    def search(text: str) -> object:
        words = " ".join(WORD.findall(text.lower()))  # else "x-ray" is a phrase, which needs positions
        return searcher.search(index.parse_query(words, ["text"]), K).hits

    return search, sum(path.stat().st_size for path in folder.iterdir())


def build_bm25s(texts: list[str], folder: Path) -> tuple[Search, int]:
    """Return the search of bm25s, and the size of its files."""
    import bm25s
    import Stemmer

    settings: dict[str, Any] = {"stopwords": "en", "stemmer": Stemmer.Stemmer("english")}
    index = bm25s.BM25(backend="numba")
    tokenizer = bm25s.tokenization.Tokenizer(**settings)
    index.index(tokenizer.tokenize(texts, return_as="tuple", show_progress=False), show_progress=False)
    index.save(folder)

    def search(text: str) -> object:
        tokens = tokenizer.tokenize([text], return_as="tuple", update_vocab=False, show_progress=False)
        return index.retrieve(tokens, k=K, n_threads=1, show_progress=False)

    return search, sum(path.stat().st_size for path in folder.iterdir())


def measure(contenders: dict[str, Search], queries: list[str]) -> dict[str, dict[str, float]]:
    """Return the median and the 95th percentile of each contender in milliseconds; they take turns.

    Beside the time, that of the processor is measured: on a machine with other work only the latter tells.
    """
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
    for search in contenders.values():  # what is loaded or compiled once
        for query in queries[:20]:
            search(query)
    for query in queries:
        for name, search in contenders.items():
            start, processor = time.perf_counter(), time.thread_time()
            search(query)
            seconds[name].append((time.perf_counter() - start, time.thread_time() - processor))
    report = {}
    for name, times in seconds.items():
        elapsed, used = 1e3 * np.array(times).T
        report[name] = {
            "median": round(float(np.median(elapsed)), 3),
            "p95": round(float(np.quantile(elapsed, 0.95)), 3),
            "processor_median": round(float(np.median(used)), 3),
            "processor_p95": round(float(np.quantile(used, 0.95)), 3),
        }
    return report


def rss() -> int:
    """Return the resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main()
