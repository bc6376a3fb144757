"""The same collection in a folder, in PostgreSQL and in Milvus: loading, exact and approximate search.

    python -m benchmarks.engines [--documents 100000] [--rounds 15] [--engines folder postgresql milvus]

The servers are started on loopback with their default settings; traffic of Milvus passes through a relay
process (tests/collection/apart.py). Codes are drawn around centroids, as learnt codes are, and loaded without
encoding. A search is timed from the code to k hits with their texts and fields. The engines alternate. Prints
JSON.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.alternating import median_seconds
from benchmarks.collection import clustered_codes, document, random_model
from benchmarks.machine import facts
from snuh.collection import Collection
from snuh.collection.backend import NewDocument, module_of

K, BATCH = 10, 5_000
SOME, RARE = "kind = 3", "number < 200"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    arguments = parser.parse_args()
    with ExitStack() as stack:
        addresses = {name: stack.enter_context(ENGINES[name]()) for name in arguments.engines}
        result = measure(addresses, arguments.documents, arguments.rounds)
    print(json.dumps({**result, "machine": facts()}, indent=2))


def measure(addresses: dict[str, Path | str], count: int, rounds: int) -> dict[str, object]:
    rng = np.random.default_rng(0)
    codes = clustered_codes(rng, count)
    model = random_model(rng)
    report: dict[str, dict[str, object]] = {name: {} for name in addresses}
    opened: dict[str, Collection] = {}
    with ExitStack() as stack:
        for name, address in addresses.items():
            start = time.perf_counter()
            with module_of(address).creating(str(address), model) as put:
                for first in range(0, count, BATCH):
                    part = codes[first : first + BATCH]
                    put([NewDocument(document(first + i), code.tobytes()) for i, code in enumerate(part)])
            report[name]["documents_per_second_loaded"] = count / (time.perf_counter() - start)
            opened[name] = stack.enter_context(Collection(address))
            start = time.perf_counter()
            made = opened[name].build_index(k=K)
            report[name]["approximate"] = {
                "seconds_to_make": time.perf_counter() - start,
                **made.settings,
                "recall": made.recall,
            }
            sizes = opened[name].info()
            report[name]["bytes_per_document"] = sizes.bytes_per_document
        queries = clustered_codes(rng, 256)
        _check_same(opened, queries[:5])
        ways = {
            "exact": {},
            "filtered": {"where": SOME},
            "filtered, rare": {"where": RARE},
            "approximate": {"approximate": True},
        }
        contenders = {
            f"{name}/{way}": _with_next_query(partial(opened[name].search_codes, k=K, **options), queries)
            for way, options in ways.items()
            for name in opened
        }
        medians = median_seconds(contenders, rounds=rounds)
    for name in opened:
        milliseconds = {way: 1e3 * medians[f"{name}/{way}"] for way in ways}
        report[name]["milliseconds"] = milliseconds
        if "folder" in opened:
            report[name]["over_folder"] = {
                way: medians[f"{name}/{way}"] / medians[f"folder/{way}"] for way in ways
            }
    return {"documents": count, "k": K, "engines": report}


def _check_same(opened: dict[str, Collection], queries: NDArray[np.uint8]) -> None:
    answers = [one.search_codes(queries, k=K, where=SOME) for one in opened.values()]
    assert all(answer == answers[0] for answer in answers)


def _with_next_query(
    run: Callable[[NDArray[np.uint8]], object], queries: NDArray[np.uint8]
) -> Callable[[], object]:
    number = 0

    def search() -> object:
        nonlocal number
        number += 1
        return run(queries[number % len(queries)][None])

    return search


@contextmanager
def _folder() -> Iterator[Path]:
    from tests.collection.engines import folders

    with folders() as engine:
        yield engine.fresh()


@contextmanager
def _postgresql() -> Iterator[str]:
    from tests.collection.engines import Postgres
    from tests.collection.postgres_server import PostgresServer

    server = PostgresServer(settings={})
    try:
        yield Postgres(server).fresh()
    finally:
        server.stop()


@contextmanager
def _milvus() -> Iterator[str]:
    from tests.collection.milvus_server import MilvusServer

    server = MilvusServer(settings={})
    try:
        yield server.address("benchmark")
    finally:
        server.stop()


ENGINES: dict[str, Callable[[], AbstractContextManager[Path | str]]] = {
    "folder": _folder,
    "postgresql": _postgresql,
    "milvus": _milvus,
}


if __name__ == "__main__":
    main()
