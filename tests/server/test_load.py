"""Concurrent searches, adds and deletes return correct results; SNUH_LOAD_SECONDS sets the duration."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from snuh import Client
from snuh.collection import Collection
from snuh.search import Hit
from tests.collection.worlds import WORDS, Mirror, code_of, distance, document, stored, toy_model
from tests.server.serving import serving

SECONDS = float(os.environ.get("SNUH_LOAD_SECONDS", "6"))
STEADY = [document(number, kind="steady") for number in range(300)]
MODEL = toy_model()


def check_hits(text: str, hits: list[Hit]) -> None:
    """Check the distances of the hits, and their order."""
    query = code_of(MODEL, text)
    assert query is not None
    for hit in hits:
        code = code_of(MODEL, hit.document.text)
        assert code is not None and hit.distance == distance(query, code)
    assert [hit.distance for hit in hits] == sorted(hit.distance for hit in hits)
    assert len({hit.document.id for hit in hits}) == len(hits)


def search(url: str, seed: int, until: float) -> int:
    """Search, with and without a filter that excludes the documents of the writers."""
    rng = random.Random(seed)
    steady = Mirror(MODEL, {document.id: document for document in STEADY})
    done = 0
    with Client("c", server=url) as client:
        while time.monotonic() < until:
            text = " ".join(rng.choices(WORDS, k=2))
            k = rng.choice([1, 10, 50])
            check_hits(text, client.search(text, mode="codes", k=k))
            hits = client.search(text, mode="codes", k=k, where='kind = "steady"')
            # Ties are ordered by scores of words, which depend on what others write.
            every = steady.search(text, k=len(STEADY))
            assert [hit.distance for hit in hits] == [hit.distance for hit in every[:k]]
            assert all(hit in every for hit in hits)
            done += 2
    return done


def write(url: str, seed: int, until: float) -> int:
    """Add, replace and delete documents; each change is visible at once."""
    rng = random.Random(seed)
    mine: set[str] = set()
    done = 0
    with Client("c", server=url) as client:
        while time.monotonic() < until or mine:
            if mine and (len(mine) > 50 or rng.random() < 0.4 or time.monotonic() >= until):
                deleted = rng.sample(sorted(mine), k=min(5, len(mine)))
                assert client.delete(deleted) == len(deleted)
                mine -= set(deleted)
                assert deleted[0] not in client
            else:
                new = [document(rng.randrange(1_000), kind=f"writer{seed}") for _ in range(3)]
                texts = {f"w{seed}-{item.id}": item.text for item in new}
                client.add(
                    {"id": doc_id, "text": text, "kind": f"writer{seed}"} for doc_id, text in texts.items()
                )
                mine |= texts.keys()
                hits = client.search(new[0].text, mode="codes", k=1_000, where=f'kind = "writer{seed}"')
                assert {hit.document.id for hit in hits} == mine
            done += 2
    return done


@pytest.mark.slow
def test_results_stay_correct_under_concurrent_reads_and_writes(root: Path) -> None:
    with Collection.create(root / "c", MODEL) as collection:
        collection.add(STEADY)
    failures: list[BaseException] = []
    done: list[int] = []

    def run(work: Callable[[str, int, float], int], url: str, seed: int, until: float) -> None:
        try:
            done.append(work(url, seed, until))
        except BaseException as error:
            failures.append(error)

    with serving(root / "c") as server:
        until = time.monotonic() + SECONDS
        kinds = [search, search, search, search, write, write]
        threads = [
            threading.Thread(target=run, args=(work, server.url, seed, until))
            for seed, work in enumerate(kinds)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures, failures[0]
        assert len(done) == len(kinds) and min(done) > 0
        mirror = stored(root / "c")
        assert list(mirror.documents.values()) == STEADY
        with server.client() as client:
            for text in WORDS:
                assert client.search(text, mode="codes", k=400) == mirror.search(text, k=400)
