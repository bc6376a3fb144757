"""A collection as the server uses it: worker threads, batched searches, a cache and JSON results."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import tee
from typing import Any, TypeAlias, TypeVar

from snuh.collection import Collection
from snuh.collection.query import hit_to_json
from snuh.corpus.document import text_length
from snuh.errors import SnuhError
from snuh.explain import Explanation, WordContribution, explain, explain_hits, marked
from snuh.model import Model
from snuh.search import Hit, unknown_words
from snuh.server.errors import ApiError, check_response_size, json_bytes, unavailable
from snuh.server.middleware import Metrics
from snuh.server.schemas import SearchRequest, SimilarRequest
from snuh.server.settings import Limits

Json: TypeAlias = dict[str, Any]  # Any: JSON values
SearchResult: TypeAlias = bytes | Exception  # the JSON body, or the error to raise
Result = TypeVar("Result")

MAX_BATCH = 32  # searches answered by one scan of the codes
SNIPPET_CHARACTERS, EXPLANATION_CHARACTERS = 160, 2_000  # of highlighted fragments
MAX_HIT_WORDS, MAX_EXPLAINED_WORDS, MAX_SPANS = 10, 500, 100  # words of a hit, of an explanation; spans


class CollectionWorker:
    """A thread with its own connection to a collection; it runs one task at a time."""

    def __init__(self, folder: str, *, queue_size: int) -> None:
        self.collection = Collection(folder)
        self.thread = ThreadPoolExecutor(1)
        self._queued, self._queue_size = 0, queue_size

    async def run(self, task: Callable[[Collection], Result]) -> Result:
        """Run a task in the thread and return its result; 503 if the queue is full."""
        if self._queued >= self._queue_size:
            raise unavailable("too many requests are waiting for this collection: try again later")
        self._queued += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self.thread, task, self.collection)
        finally:
            self._queued -= 1

    def close(self) -> None:
        """Finish the running task, cancel the others and close the collection."""
        self.thread.shutdown(cancel_futures=True)
        self.collection.close()


class SearchBatcher:
    """Answers concurrent searches in batches, so that they share one scan of the codes.

    No search is delayed to fill a batch: the thread takes what has been queued while it was busy.
    """

    def __init__(
        self,
        worker: CollectionWorker,
        search: Callable[[Sequence[SearchRequest]], Sequence[SearchResult]],
        *,
        queue_size: int,
    ) -> None:
        self._worker, self._search, self._queue_size = worker, search, queue_size
        self._queue: deque[tuple[SearchRequest, asyncio.Future[bytes]]] = deque()
        self._lock = threading.Lock()
        self._is_running = False

    async def search(self, query: SearchRequest) -> bytes:
        """Return the JSON result of a search; 503 if the queue is full."""
        if len(self._queue) >= self._queue_size:
            raise unavailable("too many searches are waiting for this collection: try again later")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bytes] = loop.create_future()
        with self._lock:
            self._queue.append((query, future))
            must_start, self._is_running = not self._is_running, True
        if must_start:
            self._worker.thread.submit(self._run, loop)
        return await future

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        """Answer batches until the queue is empty; runs in the worker's thread."""
        while True:
            with self._lock:
                batch = [self._queue.popleft() for _ in range(min(MAX_BATCH, len(self._queue)))]
                if not batch:
                    self._is_running = False
                    return
            try:
                results = self._search([query for query, _ in batch])
            except Exception as error:  # a bug: report it to every client of the batch and go on
                results = [error] * len(batch)
            loop.call_soon_threadsafe(_set_results, [future for _, future in batch], results)


def _set_results(futures: Sequence[asyncio.Future[bytes]], results: Sequence[SearchResult]) -> None:
    for future, result in zip(futures, results, strict=True):
        if future.done():  # cancelled: the client has disconnected
            continue
        if isinstance(result, bytes):
            future.set_result(result)
        else:
            future.set_exception(result)


@dataclass(frozen=True, slots=True)
class _CacheEntry:
    value: Any  # the result of any function
    version: str  # of the collection
    created: float


class CollectionService:
    """One collection with a worker thread each for searches, other reads, writes, and its status.

    Collections, and the four kinds of work, do not block each other.
    """

    def __init__(self, name: str, folder: str, *, limits: Limits, metrics: Metrics) -> None:
        self.name, self.folder = name, folder
        self.limits, self._metrics = limits, metrics
        self._cache: dict[str, _CacheEntry] = {}
        self._workers: list[CollectionWorker] = []
        try:
            for _ in range(4):
                self._workers.append(CollectionWorker(folder, queue_size=limits.queue_size))
        except BaseException:
            self.close()
            raise
        self._searcher, self.reader, self.writer, self.status = self._workers
        self._batcher = SearchBatcher(self._searcher, self._search, queue_size=limits.queue_size)

    async def search(self, query: SearchRequest) -> bytes:
        """Return the JSON result of a search for a text."""
        return await self._batcher.search(query)

    def _search(self, queries: Sequence[SearchRequest]) -> list[SearchResult]:
        self._metrics.count_batch(len(queries))
        return search_texts(self._searcher.collection, queries, max_bytes=self.limits.response_bytes)

    async def cached(
        self,
        key: str,
        compute: Callable[[Collection], Any],
        *,
        max_age: float = math.inf,
        is_status: bool = False,
    ) -> Any:  # Any: the result of `compute`
        """Return `compute(collection)`, computed again after a write or after `max_age` seconds.

        With `is_status` it does not wait for other reads.
        """

        def task(collection: Collection) -> Any:
            version, now = collection.version(), time.monotonic()
            entry = self._cache.get(key)
            if entry is None or entry.version != version or now - entry.created > max_age:
                entry = self._cache[key] = _CacheEntry(compute(collection), version, now)
            return entry.value

        return await (self.status if is_status else self.reader).run(task)

    def close(self) -> None:
        """Stop all threads."""
        for worker in self._workers:
            worker.close()


def search_texts(
    collection: Collection, queries: Sequence[SearchRequest], *, max_bytes: int
) -> list[SearchResult]:
    """Search for texts; queries with the same options share one scan."""
    by_options: dict[tuple[Any, ...], list[int]] = {}
    for index, query in enumerate(queries):
        by_options.setdefault(tuple(query.search_options.values()), []).append(index)
    results: list[SearchResult] = [b""] * len(queries)
    for indices in by_options.values():
        texts = [queries[index].text or "" for index in indices]
        try:
            hit_lists = collection.search_many(texts, **queries[indices[0]].search_options)
        except SnuhError as error:
            for index in indices:
                results[index] = error
            continue
        bits = collection.model.bits
        for index, text, hits in zip(indices, texts, hit_lists, strict=True):
            if hits is None:
                results[index] = unknown_words(text)
                continue
            try:
                results[index] = search_to_json(bits, queries[index], hits, max_bytes=max_bytes)
            except ApiError as error:
                results[index] = error
    return results


def search_explained(
    collection: Collection, query: SearchRequest | SimilarRequest, *, max_bytes: int
) -> bytes:
    """Search for a text or for similar documents, and explain the hits if the request says so."""
    if query.id is not None:
        hits = collection.similar(query.id, **query.search_options)
        text = collection.get(query.id).text if query.explain else ""
    else:
        text = _query_text(query) or ""
        hits = collection.search(text, **query.search_options)
    model = collection.model
    explanations: Iterable[Json] = ()
    if query.explain:
        # Whole texts, a few of which are in memory at a time.
        texts, same_texts = tee(collection.get(hit.document.id).text for hit in hits)
        explanations = map(_explained_hit, same_texts, explain_hits(model, text, texts))
    return search_to_json(model.bits, query, hits, explanations, max_bytes=max_bytes)


def _explained_hit(text: str, explanation: Explanation) -> Json:
    return {
        "fragments": _fragments(text, explanation.hit_words, SNIPPET_CHARACTERS),
        "words": _contributions_to_json(_strongest(explanation.hit_words, MAX_HIT_WORDS)),
        "query_words": _contributions_to_json(_strongest(explanation.query_words, MAX_HIT_WORDS)),
    }


def search_to_json(
    bits: int,
    query: SearchRequest | SimilarRequest,
    hits: Sequence[Hit],
    explanations: Iterable[Json] = (),
    *,
    max_bytes: int,
) -> bytes:
    """Return the JSON body of a search response."""
    rows = hits_to_json(hits, max_bytes=max_bytes)
    for row, explanation in zip(rows, explanations, strict=False):
        row.update(explanation)
    text = None if query.id is not None else _query_text(query)
    return json_bytes({"query": text, "id": query.id, "bits": bits, "hits": rows})


def _query_text(query: SearchRequest | SimilarRequest) -> str | None:
    return query.text if isinstance(query, SearchRequest) else None


def hits_to_json(hits: Sequence[Hit], *, max_bytes: int) -> list[Json]:
    """Return hits as JSON values; 413 if their texts alone exceed `max_bytes`."""
    check_response_size(sum(len(hit.document.text) for hit in hits), max_bytes)
    return [{**hit_to_json(hit), "length": text_length(hit.document)} for hit in hits]


def explanation_to_json(model: Model, query: str, hit: str) -> Json:
    """Explain a hit, and return the explanation with all bits as JSON values."""
    explanation = explain(model, query, hit)
    return {
        "distance": explanation.distance,
        "bits": [
            {
                "bit": pair.bit,
                "query": pair.query,
                "hit": pair.hit,
                "query_margin": round(pair.query_margin, 6),
                "hit_margin": round(pair.hit_margin, 6),
            }
            for pair in explanation.bits
        ],
        "query_words": _contributions_to_json(_strongest(explanation.query_words, MAX_EXPLAINED_WORDS)),
        "hit_words": _contributions_to_json(_strongest(explanation.hit_words, MAX_EXPLAINED_WORDS)),
        "query_fragments": _fragments(query, explanation.query_words, EXPLANATION_CHARACTERS),
        "hit_fragments": _fragments(hit, explanation.hit_words, EXPLANATION_CHARACTERS),
    }


def _fragments(
    text: str, contributions: Sequence[WordContribution], characters: int
) -> list[tuple[str, float]]:
    """Return pieces of a text; the weight of a word is how much it moved its code towards the other."""
    net = [replace(word, agreeing=word.agreeing - word.differing) for word in contributions]
    return [(piece.text, round(piece.weight, 4)) for piece in marked(text, net, width=characters)]


def _strongest(contributions: Sequence[WordContribution], limit: int) -> Sequence[WordContribution]:
    """Return the words with the largest contributions of either sign, in their order."""
    if len(contributions) <= limit:
        return contributions
    weakest = sorted(abs(word.agreeing) for word in contributions)[-limit]
    return [word for word in contributions if abs(word.agreeing) >= weakest][:limit]


def _contributions_to_json(contributions: Sequence[WordContribution]) -> list[Json]:
    return [
        {
            "word": word.word,
            "agreeing": round(word.agreeing, 6),
            "differing": round(word.differing, 6),
            "spans": word.spans[:MAX_SPANS],
        }
        for word in contributions
    ]
