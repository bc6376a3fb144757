"""The most expensive requests that could be found: memory and processor time of each are bounded."""

from __future__ import annotations

import os
import resource
import shutil
from collections.abc import Iterator
from typing import Any

import numpy as np
import psutil
import pytest

from snuh.collection import Collection
from tests.collection.worlds import WORDS, temporary_folder, toy_model
from tests.server.serving import Server, serving

MEGABYTES, SECONDS = 256, 5.0  # above idle; of processor time
DOCUMENTS, LONG = 18_000, 7_000_000
PATH = "/v1/collections/c"
TEXTS = [" ".join(WORDS[number % 12 :] + [f"w{number}"] * 1_500)[:10_000] for number in range(100)]


@pytest.fixture(scope="module")
def costly() -> Iterator[Server]:
    """A server with 18,000 documents and a dozen very long ones."""
    root = temporary_folder()
    rng = np.random.default_rng(0)
    with Collection.create(root / "c", toy_model()) as collection:
        words = np.array([*WORDS, *(f"filler{n}" for n in range(500))])
        texts = (" ".join(rng.choice(words, size=80)) for _ in range(DOCUMENTS))
        collection.add(
            {"id": f"d{number}", "text": text, "year": 2000 + number % 20, "n": {"x": [number]}}
            for number, text in enumerate(texts)
        )
        collection.add(
            {"id": f"long-{number}", "text": (" ".join(WORDS[number:]) + f" İ{number} ") * (LONG // 80)}
            for number in range(12)
        )
    with serving(root / "c", MALLOC_ARENA_MAX="1", OMP_NUM_THREADS="1", NUMBA_NUM_THREADS="1") as server:
        for path in ("", "/facets", "/bits"):
            assert server.get(PATH + path).status_code == 200
        for rerank in (None, "cosine", "asymmetric"):  # compiles kernels, and starts threads
            body = {"text": "ship " + "x" * 5_000, "explain": True, "rerank": rerank}
            assert server.post(f"{PATH}/search", body).status_code == 200
        process = psutil.Process(server.process.pid)
        limit = process.memory_info().vms + (MEGABYTES << 20)
        resource.prlimit(process.pid, resource.RLIMIT_AS, (limit, limit))
        yield server
    shutil.rmtree(root)


def search(**options: Any) -> tuple[str, dict[str, Any]]:
    return "/search", {"text": TEXTS[0], **options}


def batch(**options: Any) -> tuple[str, dict[str, Any]]:
    return "/search/batch", {"texts": TEXTS, **options}


REQUESTS: dict[str, tuple[str, dict[str, Any] | None]] = {
    "explained hits": search(k=100, explain=True),
    "explained whole hits": search(k=100, explain=True, characters=None),
    "explained, similar to a long text": ("/similar", {"id": "long-0", "k": 100, "explain": True}),
    "long text explained by a long text": ("/explain", {"query_id": "long-0", "id": "long-1"}),
    "whole hits": search(k=1_000, characters=None),
    "hits by words": search(k=1_000, rerank="cosine", shortlist=10_000),
    "hits by margins": search(k=1_000, rerank="asymmetric", shortlist=10_000),
    "a batch": batch(k=100),
    "a batch of whole hits": batch(k=100, characters=None),
    "a batch by words": batch(k=100, rerank="cosine", shortlist=200),
    "a batch by words, too many": batch(k=100, rerank="cosine", shortlist=10_000),
    "a batch by margins": batch(k=100, rerank="asymmetric", shortlist=5_000),
    "a batch with a filter": batch(k=10, where=" or ".join(f"year = {year}" for year in range(200))),
    "a long filter": search(where=" or ".join(f"n.x contains {n}" for n in range(200))),
    "many long documents": (f"/documents?{'&'.join(f'id=long-{n}' for n in range(12))}", None),
    "a sample": ("/sample?limit=1000", None),
    "facets": ("/facets", None),
    "bits": ("/bits?words=100", None),
    "many texts to encode": ("/encode", {"texts": ["ship " * 16_000] * 100}),
    "many documents": (
        "/documents",
        {"documents": [{"id": f"new-{n}", "text": "ship fog " * 850} for n in range(1_000)]},
    ),
    "a document of many fields": (
        "/documents",
        {"documents": [{"id": "fields", "text": "ship", **{f"f{n}": n for n in range(100_000)}}]},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REQUESTS)
def test_no_request_takes_much_memory_or_time(costly: Server, name: str) -> None:
    path, body = REQUESTS[name]
    process = psutil.Process(costly.process.pid)
    before = process.cpu_times()
    response = costly.get(PATH + path) if body is None else costly.post(PATH + path, body)
    after = process.cpu_times()
    seconds = after.user + after.system - before.user - before.system
    assert response.status_code in (200, 400, 413), response.text[:300]
    assert seconds < SECONDS * (1 if os.environ.get("CI") is None else 3)
    assert costly.get("/ready").json() == {"status": "ready"}
