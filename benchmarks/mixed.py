"""Concurrent searches, adds and deletes over HTTP; every response is compared with brute force.

    python -m benchmarks.mixed [--seconds 300] [--documents 100000] [--searchers 6] [--writers 2]

Most documents are never changed. Writers add, replace and delete documents of their own, and search for them
after each step. Searchers search with a filter that excludes the writers' documents, where the response must
equal brute force including ids, and without a filter, where each distance must be correct and none larger
than brute force over the unchanged documents. A wrong response or an error ends the run with exit code 1.
Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.machine import facts
from benchmarks.served import BITS, drawn, make, queries, random_model
from benchmarks.server import serving
from snuh import Client
from snuh.search import Hit

MODEL = random_model()
TEXTS = queries(2_000)


class Steady:
    """The unchanged documents, and their brute-force results."""

    def __init__(self, count: int) -> None:
        documents = list(drawn(count))
        self.where = f"number < {count}"
        self.ids = [document.id for document in documents]
        self._codes = words_of([document.text for document in documents])

    def nearest(self, text: str, *, k: int) -> list[tuple[str, int]]:
        distances = np.bitwise_count(self._codes ^ words_of([text])[0])
        order = np.argsort(distances, kind="stable")[:k]
        return [(self.ids[row], int(distances[row])) for row in order]


def words_of(texts: list[str]) -> NDArray[np.uint64]:
    return MODEL.encode(texts).view(np.uint64)[:, 0]


def plain(hits: list[Hit]) -> list[tuple[str, int]]:
    return [(hit.document.id, hit.distance) for hit in hits]


class Run:
    """State shared by the threads: deadline, counters and failures."""

    def __init__(self, target: tuple[str, str], steady: Steady, seconds: float) -> None:
        self.name, self.url = target
        self.steady, self.until = steady, time.monotonic() + seconds
        self.counts: Counter[str] = Counter()
        self.seconds: list[float] = []
        self.failures: list[str] = []

    def client(self) -> Client:
        return Client(self.name, server=self.url)

    def goes_on(self) -> bool:
        return time.monotonic() < self.until and not self.failures

    def start(self, work: Callable[[Run, int], None], seed: int) -> threading.Thread:
        def guarded() -> None:
            try:
                work(self, seed)
            except Exception as error:  # reported at the end
                self.failures.append(f"{type(error).__name__}: {error}")

        thread = threading.Thread(target=guarded)
        thread.start()
        return thread


def search(run: Run, seed: int) -> None:
    rng = random.Random(seed)
    with run.client() as client:
        while run.goes_on():
            text, k = rng.choice(TEXTS), rng.choice([1, 10, 50])
            expected = run.steady.nearest(text, k=k)
            started = time.perf_counter()
            every = client.search(text, k=k, mode="codes")
            some = client.search(text, k=k, mode="codes", where=run.steady.where)
            run.seconds.append((time.perf_counter() - started) / 2)
            run.counts["searches"] += 2
            if plain(some) != expected:
                raise ValueError(f"the answer to {text!r} is not that of brute force")
            code = words_of([text])[0]
            true = np.bitwise_count(words_of([hit.document.text for hit in every]) ^ code).tolist()
            distances = [hit.distance for hit in every]
            nearest = [distance for _, distance in expected]
            if distances != true or distances != sorted(distances) or any(np.greater(distances, nearest)):
                raise ValueError(f"the distances of {text!r} are wrong")


def write(run: Run, seed: int) -> None:
    rng, mine = random.Random(seed), dict[str, str]()
    with run.client() as client:
        while run.goes_on() or (mine and not run.failures):
            if mine and (len(mine) > 100 or rng.random() < 0.4 or not run.goes_on()):
                gone = rng.sample(sorted(mine), k=min(5, len(mine)))
                client.delete(gone)
                run.counts["deletes"] += len(gone)
                for one in gone:
                    del mine[one]
            else:
                new = {f"writer{seed}-{rng.randrange(1_000)}": rng.choice(TEXTS) for _ in range(3)}
                client.add({"id": name, "text": text, "writer": seed} for name, text in new.items())
                run.counts["adds"] += len(new)
                mine |= new
            found = client.search(TEXTS[0], k=1_000, mode="codes", where=f"writer = {seed}")
            run.counts["searches"] += 1
            if {hit.document.id: hit.document.text for hit in found} != mine:
                raise ValueError("the search did not return what was written")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--searchers", type=int, default=6)
    parser.add_argument("--writers", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "mixed"
        make(folder, documents=options.documents)
        with serving(folder) as (port, _):
            steady = Steady(options.documents)
            run = Run((folder.name, f"http://127.0.0.1:{port}"), steady, options.seconds)
            kinds = [search] * options.searchers + [write] * options.writers
            with run.client() as client:
                client.add([{"id": "first", "text": TEXTS[0], "writer": -1}])  # so that the field is known
                for thread in [run.start(work, seed) for seed, work in enumerate(kinds)]:
                    thread.join()
                client.delete(["first"])
                left = len(client) - options.documents
    milliseconds = np.percentile(np.array(run.seconds or [0.0]) * 1e3, [50, 99]).tolist()
    report = {**vars(options), "bits": BITS, **run.counts, "documents_left_over": left}
    report |= {"p50_milliseconds": milliseconds[0], "p99_milliseconds": milliseconds[1]}
    print(json.dumps({**report, "wrong_or_failed": run.failures, "machine": facts()}, indent=2))
    sys.exit(1 if run.failures or left else 0)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
