"""Searches of one collection by words and codes, in a folder and in PostgreSQL: the same hits, and how long.

    python -m benchmarks.words_engines ir/cranfield [--documents 100000] > results/words_engines.json

The judged queries of a BEIR folder are searched in both; counted are those whose top 10 differ in a document,
in the order, or in a score by more than 0.001. Then the documents are repeated until there are --documents:
loading is timed with and without the index of words, codes given, and searches alternate. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from benchmarks.alternating import median_seconds
from benchmarks.engines import ENGINES
from benchmarks.machine import facts
from snuh.collection import Collection
from snuh.collection.backend import NewDocument, module_of
from snuh.collection.copy import copy_collection
from snuh.collection.query import Mode
from snuh.corpus import Document, open_source
from snuh.corpus.beir import read_judged
from snuh.encoding import encode_documents
from snuh.hasher import TextHasher
from snuh.io import Location
from snuh.model import Model

K, TOLERANCE, BATCH = 10, 1e-3, 20_000
MODES: tuple[Mode, ...] = ("hybrid", "words", "codes")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--bits", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=100)
    options = parser.parse_args()
    source = open_source(options.folder)
    hasher = TextHasher("itq", bits=options.bits).fit_source(source)
    assert hasher.model_ is not None
    queries = list(read_judged(options.folder).texts.values())
    report = {
        "corpus": options.folder.name,
        "bits": options.bits,
        "differing": differing(hasher.model_, list(source.documents()), queries),
        "timed": timed(hasher.model_, list(source.documents()), queries, options.documents, options.rounds),
    }
    print(json.dumps({**report, "machine": facts()}, indent=2))


def differing(model: Model, documents: list[Document], queries: list[str]) -> dict[str, int]:
    """Count the queries whose top 10 differ."""
    with ExitStack() as stack:
        folder, server = (stack.enter_context(ENGINES[name]()) for name in ("folder", "postgresql"))
        with Collection.create(folder, model) as made:
            made.add(documents)
        copy_collection(folder, server)
        ours, theirs = (stack.enter_context(Collection(place)) for place in (folder, server))
        counts = {"queries": len(queries)}
        for mode in MODES:
            pairs = [(ours.search(text, mode=mode), theirs.search(text, mode=mode)) for text in queries]
            counts[mode] = sum(
                [hit.document.id for hit in one] != [hit.document.id for hit in other]
                or any(
                    abs((hit.score or 0.0) - (same.score or 0.0)) > TOLERANCE
                    for hit, same in zip(one, other, strict=True)
                )
                for one, other in pairs
            )
    return counts


def timed(
    model: Model, documents: list[Document], queries: list[str], count: int, rounds: int
) -> dict[str, object]:
    """Time loading and searching of repeated documents."""
    codes = [code for batch in encode_documents(model, documents) for code in batch.packed()]
    repeated = [
        NewDocument(Document(str(number), documents[number % len(codes)].text), codes[number % len(codes)])
        for number in range(count)
    ]
    report: dict[str, object] = {"documents": count}
    with ExitStack() as stack:
        opened = {}
        for name in ("folder", "postgresql"):
            place = stack.enter_context(ENGINES[name]())
            bare = f"{place}_bare"
            report[f"{name}, loaded per second"] = load(place, model, repeated, words=True)
            report[f"{name}, loaded per second without words"] = load(bare, model, repeated, words=False)
            opened[name] = stack.enter_context(Collection(place))
            with Collection(bare) as without:
                sizes = [one.info().bytes_per_document for one in (opened[name], without)]
            report[f"{name}, bytes per document with and without words"] = sizes
        contenders = {
            f"{name}, {mode}": _next_query(one, queries, mode)
            for mode in MODES
            for name, one in opened.items()
        }
        seconds = median_seconds(contenders, rounds=rounds)
        report["milliseconds"] = {name: 1e3 * value for name, value in seconds.items()}
        start = time.perf_counter()
        opened["postgresql"].update("7", {"changed": True})
        report["postgresql, milliseconds of an update"] = 1e3 * (time.perf_counter() - start)
        start = time.perf_counter()
        opened["postgresql"].search(queries[0])
        report["postgresql, milliseconds of the next search"] = 1e3 * (time.perf_counter() - start)
    return report


def load(place: Location, model: Model, documents: list[NewDocument], *, words: bool) -> float:
    """Return the documents written per second, codes given; a folder writes its index at the first search."""
    start = time.perf_counter()
    with module_of(place).creating(str(place), model, words=words) as put:
        for first in range(0, len(documents), BATCH):
            put(documents[first : first + BATCH])
    with Collection(place) as made:
        made.search("warm", mode="words" if words else "codes")
    return len(documents) / (time.perf_counter() - start)


def _next_query(collection: Collection, queries: list[str], mode: Mode) -> Callable[[], object]:
    number = 0

    def search() -> object:
        nonlocal number
        number += 1
        return collection.search(queries[number % len(queries)], mode=mode, characters=200)

    return search


if __name__ == "__main__":
    main()
