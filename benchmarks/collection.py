"""Collections of synthetic documents: adding, opening, exact, filtered and approximate search; and faiss.

    python -m benchmarks.collection [--documents 1000000] [--rounds 15] [--folder FOLDER]

Codes are drawn around centroids, as learnt codes are. A document is an id, a short text and two fields. A
search is timed from the code to k hits with their ids, texts and fields; faiss `IndexBinaryFlat` returns
rows. Another handle adds a document before each search "after a write". Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import faiss
import numpy as np
from numpy.typing import NDArray

from benchmarks.alternating import median_seconds
from benchmarks.machine import facts
from snuh.collection import Collection
from snuh.collection.backend import NewDocument
from snuh.corpus import Document
from snuh.encoder import Encoder, Layer
from snuh.features import TfidfFeatures
from snuh.filters import parse
from snuh.model import Model

BITS, CENTROIDS, FLIPPED, K, BATCH = 64, 4_000, 0.08, 100, 100_000


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--folder", type=Path, default=None, help="where to put it (removed at the end)")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=options.folder)) / "collection"
    try:
        result = measure(folder, options.documents, options.rounds)
    finally:
        shutil.rmtree(folder.parent)
    print(json.dumps({**result, "machine": facts()}, indent=2))


def measure(folder: Path, count: int, rounds: int) -> dict[str, object]:
    rng = np.random.default_rng(0)
    codes = clustered_codes(rng, count)
    collection = Collection.create(folder, random_model(rng))
    start = time.perf_counter()
    for first in range(0, count, BATCH):
        part = codes[first : first + BATCH]
        with collection._backend.writing() as write:
            write.put([NewDocument(document(first + i), code.tobytes()) for i, code in enumerate(part)])
    filling = time.perf_counter() - start
    collection.search_codes(codes[:1])  # writes the code file
    collection.close()

    start = time.perf_counter()
    collection = Collection(folder)
    collection.search_codes(codes[:1])
    opening = time.perf_counter() - start

    flat = faiss.IndexBinaryFlat(BITS)
    flat.add(codes)
    queries = iter(np.tile(clustered_codes(rng, 512), (200, 1)))

    def with_next_query(run: Callable[[NDArray[np.uint8]], object]) -> Callable[[], object]:
        return lambda: run(next(queries)[None])

    start = time.perf_counter()
    lists = collection.build_index(k=K)
    clustering = time.perf_counter() - start
    some, rare = "kind = 3", "kind = 3 and number < 100000"
    collection.search_codes(codes[:1], where=some)
    contenders = {
        "faiss": with_next_query(lambda query: flat.search(query, K)),
        "exact": with_next_query(lambda query: collection.search_codes(query, k=K)),
        "approximate": with_next_query(lambda query: collection.search_codes(query, k=K, approximate=True)),
        "filtered": with_next_query(lambda query: collection.search_codes(query, k=K, where=some)),
        "filtered, rare": with_next_query(lambda query: collection.search_codes(query, k=K, where=rare)),
        "approximate, filtered": with_next_query(
            lambda query: collection.search_codes(query, k=K, where=some, approximate=True)
        ),
    }
    # One query uses one thread of faiss; the others would spin and slow down the next contender.
    faiss.omp_set_num_threads(1)
    medians = median_seconds(contenders, rounds=rounds)
    faiss.omp_set_num_threads(os.cpu_count() or 1)
    batch = clustered_codes(rng, 64)
    batched = median_seconds(
        {
            "faiss": lambda: flat.search(batch, K),
            "exact": lambda: collection.search_codes(batch, k=K),
        },
        rounds=max(3, rounds // 5),
    )
    writer = Collection(folder)
    written = median_after_writes(
        {"exact": None, "filtered": some},
        lambda number: writer.add([document(10 * (count + number) + 3)]),
        lambda where: collection.search_codes(next(queries)[None], k=K, where=where),
        rounds=rounds,
    )
    writer.close()
    start = time.perf_counter()
    collection._backend.seqs_where(parse(some))
    filtering = time.perf_counter() - start
    table = collection._backend._codes()  # type: ignore[attr-defined]
    extra = table.base.seqs.nbytes + (0 if table.live is None else table.live.nbytes) + table.tail.seqs.nbytes
    store_bytes = collection.info().store_bytes
    collection.close()
    return {
        "documents": count,
        "documents_per_second_stored": count / filling,
        "seconds_to_open_and_answer": opening,
        "milliseconds": {name: 1e3 * seconds for name, seconds in medians.items()},
        "exact_over_faiss": medians["exact"] / medians["faiss"],
        "milliseconds_of_64_queries": {name: 1e3 * seconds for name, seconds in batched.items()},
        "batched_exact_over_faiss": batched["exact"] / batched["faiss"],
        "milliseconds_after_a_write": {name: 1e3 * seconds for name, seconds in written.items()},
        "filtered_over_exact_after_a_write": written["filtered"] / written["exact"],
        "seconds_of_a_new_filter": filtering,
        "bytes_per_document_beyond_the_code": extra / count,
        "store_bytes_per_document": store_bytes / count,
        "lists": {
            "seconds": clustering,
            "settings": dict(lists.settings),
            "recall": lists.recall,
            "k": lists.k,
        },
    }


def median_after_writes(
    filters: dict[str, str | None],
    write: Callable[[int], object],
    search: Callable[[str | None], object],
    *,
    rounds: int,
) -> dict[str, float]:
    """Return the median seconds of a search with each filter, each after a write of its own."""
    seconds: dict[str, list[float]] = {name: [] for name in filters}
    for number in range(rounds):
        for index, (name, where) in enumerate(filters.items()):
            write(len(filters) * number + index)
            start = time.perf_counter()
            search(where)
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def clustered_codes(rng: np.random.Generator, count: int) -> NDArray[np.uint8]:
    centroids = np.random.default_rng(1).integers(0, 256, (CENTROIDS, BITS // 8), dtype=np.uint8)
    codes = centroids[rng.integers(0, CENTROIDS, count)]
    for first in range(0, count, BATCH):
        part = codes[first : first + BATCH]
        part ^= np.packbits(rng.random((len(part), BITS), dtype=np.float32) < FLIPPED, axis=1)
    return codes


def document(number: int) -> Document:
    text = f"document {number} says something short about topic {number % 997}"
    return Document(f"doc-{number}", text, metadata={"kind": number % 10, "number": number})


def random_model(rng: np.random.Generator) -> Model:
    features = TfidfFeatures(min_df=1, max_df=1.0).fit(["document says something short about topic"] * 3)
    weight = rng.normal(size=(len(features.terms), BITS)).astype(np.float32)
    layer = Layer(weight, np.zeros(BITS, dtype=np.float32), "sigmoid")
    return Model(Encoder((layer,), np.full(BITS, 0.5, dtype=np.float32)), features)


if __name__ == "__main__":
    main()
