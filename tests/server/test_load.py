"""Searches, adds and deletes at once: no error, and every answer right; SNUH_LOAD_SECONDS makes it longer."""

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
    """Every distance is that of the texts, and the order is that of the distances."""
    query = code_of(MODEL, text)
    assert query is not None
    for hit in hits:
        code = code_of(MODEL, hit.document.text)
        assert code is not None and hit.distance == distance(query, code)
    assert [hit.distance for hit in hits] == sorted(hit.distance for hit in hits)
    assert len({hit.document.id for hit in hits}) == len(hits)


def search(url: str, seed: int, until: float) -> int:
    """Search, with and without a filter that keeps what others write out."""
    rng = random.Random(seed)
    steady = Mirror(MODEL, {one.id: one for one in STEADY})
    done = 0
    with Client("c", server=url) as client:
        while time.monotonic() < until:
            text = " ".join(rng.choices(WORDS, k=2))
            k = rng.choice([1, 10, 50])
            check_hits(text, client.search(text, k=k))
            assert client.search(text, k=k, where='kind = "steady"') == steady.search(text, k=k)
            done += 2
    return done


def write(url: str, seed: int, until: float) -> int:
    """Add, replace and delete documents of one's own; what was told is there, or gone, at once."""
    rng = random.Random(seed)
    mine: set[str] = set()
    done = 0
    with Client("c", server=url) as client:
        while time.monotonic() < until or mine:
            if mine and (len(mine) > 50 or rng.random() < 0.4 or time.monotonic() >= until):
                gone = rng.sample(sorted(mine), k=min(5, len(mine)))
                assert client.delete(gone) == len(gone)
                mine -= set(gone)
                assert gone[0] not in client
            else:
                new = [document(rng.randrange(1_000), kind=f"writer{seed}") for _ in range(3)]
                named = {f"w{seed}-{one.id}": one.text for one in new}
                client.add(
                    {"id": name, "text": text, "kind": f"writer{seed}"} for name, text in named.items()
                )
                mine |= named.keys()
                found = client.search(new[0].text, k=1_000, where=f'kind = "writer{seed}"')
                assert {hit.document.id for hit in found} == mine
            done += 2
    return done


@pytest.mark.slow
def test_answers_stay_right_while_many_search_add_and_delete(place: Path) -> None:
    with Collection.create(place / "c", MODEL) as collection:
        collection.add(STEADY)
    failures: list[BaseException] = []
    done: list[int] = []

    def run(work: Callable[[str, int, float], int], url: str, seed: int, until: float) -> None:
        try:
            done.append(work(url, seed, until))
        except BaseException as error:
            failures.append(error)

    with serving(place / "c") as server:
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
        mirror = stored(place / "c")
        assert list(mirror.documents.values()) == STEADY
        with server.client() as client:
            for text in WORDS:
                assert client.search(text, k=400) == mirror.search(text, k=400)
