"""Searches, adds and deletes at once over HTTP, for minutes; every answer is compared with brute force.

    python -m benchmarks.mixed [--seconds 300] [--documents 100000] [--searchers 6] [--writers 2]

Most documents stay. Writers add, replace and delete documents of their own, and look for them after each
step. Searchers ask with a filter that keeps the writers' documents out, where the answer must be that of
brute force to the last id, and without one, where each distance must be that of the two texts and none may
be farther than brute force on those that stay. An answer that is not right, or an error, ends the run with
exit code 1. Prints JSON.
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
    """The documents that stay, and the answers that brute force gives on them."""

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
    """What the threads share: when to end, what they have counted, and what went wrong."""

    def __init__(self, place: tuple[str, str], steady: Steady, seconds: float) -> None:
        self.name, self.url = place
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
            except Exception as error:  # whatever it is, it is told at the end
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
            every = client.search(text, k=k)
            some = client.search(text, k=k, where=run.steady.where)
            run.seconds.append((time.perf_counter() - started) / 2)
            run.counts["searches"] += 2
            if plain(some) != expected:
                raise ValueError(f"the answer to {text!r} is not that of brute force")
            code = words_of([text])[0]
            true = np.bitwise_count(words_of([hit.document.text for hit in every]) ^ code).tolist()
            told = [hit.distance for hit in every]
            nearest = [distance for _, distance in expected]
            if told != true or told != sorted(told) or any(np.greater(told, nearest)):
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
            found = client.search(TEXTS[0], k=1_000, where=f"writer = {seed}")
            run.counts["searches"] += 1
            if {hit.document.id: hit.document.text for hit in found} != mine:
                raise ValueError("what was written is not what is found")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--searchers", type=int, default=6)
    parser.add_argument("--writers", type=int, default=2)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "mixed"
        make(folder, documents=chosen.documents)
        with serving(folder) as (port, _):
            steady = Steady(chosen.documents)
            run = Run((folder.name, f"http://127.0.0.1:{port}"), steady, chosen.seconds)
            kinds = [search] * chosen.searchers + [write] * chosen.writers
            with run.client() as client:
                client.add(
                    [{"id": "first", "text": TEXTS[0], "writer": -1}]
                )  # the field is known from now on
                for thread in [run.start(work, seed) for seed, work in enumerate(kinds)]:
                    thread.join()
                client.delete(["first"])
                left = len(client) - chosen.documents
    milliseconds = np.percentile(np.array(run.seconds or [0.0]) * 1e3, [50, 99]).tolist()
    told = {**vars(chosen), "bits": BITS, **run.counts, "documents_left_over": left}
    told |= {"p50_milliseconds": milliseconds[0], "p99_milliseconds": milliseconds[1]}
    print(json.dumps({**told, "wrong_or_failed": run.failures, "machine": facts()}, indent=2))
    sys.exit(1 if run.failures or left else 0)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
