"""A collection as the server uses it: worker threads, batched searches, a cache and JSON results."""

from __future__ import annotations

import asyncio
import logging
import math
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import tee
from typing import Annotated, Any, TypeAlias, TypeVar

from fastapi import Depends, Path
from starlette.requests import Request

from snuh.collection import Collection
from snuh.collection.query import hit_to_json
from snuh.errors import SnuhError, suggest
from snuh.explain import Fragment, HitWords, Span, WordContribution, explain, explain_hits, marked
from snuh.features.vectors import Embed
from snuh.model import Model
from snuh.search import Hit, Hits, text_length
from snuh.server.middleware import Metrics
from snuh.server.requests import ApiError, check_response_size, json_bytes, unavailable
from snuh.server.schemas import SearchRequest, SimilarRequest
from snuh.server.settings import Limits
from snuh.text import quote

logger = logging.getLogger(__name__)

Json: TypeAlias = dict[str, Any]  # Any: JSON values
SearchResult: TypeAlias = bytes | Exception  # the JSON body, or the error to raise
Result = TypeVar("Result")

MAX_BATCH = 32  # searches answered by one scan of the codes
SNIPPET_CHARACTERS, EXPLANATION_CHARACTERS = 160, 2_000  # of highlighted fragments
MAX_EXPLAINED_WORDS, MAX_SPANS = 500, 100  # words of an explanation; spans of each
MIN_WEIGHT = 0.12  # of a highlighted word, as a fraction of the strongest
CHARACTERS_AT_ONCE = 500_000  # of texts to explain


class CollectionWorker:
    """A thread with its own connection to a collection; it runs one task at a time."""

    def __init__(self, folder: str, *, queue_size: int, embed: Embed | None = None) -> None:
        self.collection = Collection(folder, embed=embed)
        self.thread = ThreadPoolExecutor(1)
        self.queued, self._queue_size = 0, queue_size

    async def run(self, task: Callable[[Collection], Result]) -> Result:
        """Run a task in the thread and return its result; 503 if the queue is full."""
        if self.queued >= self._queue_size:
            raise unavailable("too many requests are waiting for this collection: try again later")
        self.queued += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self.thread, task, self.collection)
        finally:
            self.queued -= 1

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

    def __len__(self) -> int:
        """Return the number of waiting searches."""
        return len(self._queue)

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

    def __init__(
        self, name: str, folder: str, *, limits: Limits, metrics: Metrics, embed: Embed | None = None
    ) -> None:
        self.name, self.folder = name, folder
        self.limits, self._metrics = limits, metrics
        self._cache: dict[str, _CacheEntry] = {}
        self._workers: list[CollectionWorker] = []
        try:
            for _ in range(4):
                self._workers.append(CollectionWorker(folder, queue_size=limits.queue_size, embed=embed))
        except BaseException:
            self.close()
            raise
        self._searcher, self.reader, self.writer, self.status = self._workers
        self._batcher = SearchBatcher(self._searcher, self._search, queue_size=limits.queue_size)
        self._warming = [
            worker.thread.submit(warm_up, worker.collection) for worker in (self._searcher, self.reader)
        ]

    @property
    def queue_length(self) -> int:
        """The number of requests that are waiting, or being answered."""
        return len(self._batcher) + sum(worker.queued for worker in self._workers)

    @property
    def is_warm(self) -> bool:
        """Whether searches take no longer than they will later."""
        return all(future.done() for future in self._warming)

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


def warm_up(collection: Collection) -> None:
    """Load the codes and compile what searches need, in the thread that will search."""
    try:
        features = collection.model.features
        word = features.words[0] if features is not None else ""
        for mode in ("codes", "hybrid"):
            query = SearchRequest.model_validate({"text": word, "k": 1, "mode": mode, "explain": True})
            search_explained(collection, query, max_bytes=sys.maxsize)
    except SnuhError as error:  # requests report it
        logger.info("warming up: %s", error)


def search_texts(
    collection: Collection, queries: Sequence[SearchRequest], *, max_bytes: int
) -> list[SearchResult]:
    """Search for texts; queries with the same options share one scan."""
    by_options: dict[tuple[Any, ...], list[int]] = {}
    for index, query in enumerate(queries):
        # One with a vector is searched alone: an error is about its own vector.
        alone = None if query.vector is None else index
        by_options.setdefault((alone, *query.search_options.values()), []).append(index)
    results: list[SearchResult] = [b""] * len(queries)
    for indices in by_options.values():
        texts = [queries[index].text or "" for index in indices]
        vector = queries[indices[0]].vector
        started = time.perf_counter()
        try:
            hit_lists = collection.search_many(
                texts, vectors=None if vector is None else [vector], **queries[indices[0]].search_options
            )
        except SnuhError as error:
            for index in indices:
                results[index] = error
            continue
        bits, took_ms = collection.model.bits, milliseconds_since(started)
        for index, hits in zip(indices, hit_lists, strict=True):
            try:
                results[index] = search_to_json(
                    bits, queries[index], hits, took_ms=took_ms, max_bytes=max_bytes
                )
            except ApiError as error:
                results[index] = error
    return results


def milliseconds_since(started: float) -> float:
    """Return the time since a value of `time.perf_counter`, with microseconds."""
    return round(1e3 * (time.perf_counter() - started), 3)


def search_explained(
    collection: Collection, query: SearchRequest | SimilarRequest, *, max_bytes: int
) -> bytes:
    """Search for a text or for similar documents, and explain the hits if the request says so."""
    started = time.perf_counter()
    if query.id is not None:
        hits = collection.similar(query.id, **query.search_options)
    else:
        vector = query.vector if isinstance(query, SearchRequest) else None
        hits = collection.search(_query_text(query) or "", vector=vector, **query.search_options)
    took_ms = milliseconds_since(started)
    model = collection.model
    explanations: Iterable[Json] = ()
    if query.explain and hits:
        shown = hits[query.offset :]
        text = _query_text(query) if query.id is None else collection.get(query.id).text
        texts, same_texts = tee(_whole_texts(collection, shown))
        matched = _matched_terms(model, shown)
        explained = explain_hits(model, text or "", texts, matched=matched, min_weight=MIN_WEIGHT)
        explanations = map(_explained_hit, same_texts, explained)
    return search_to_json(model.bits, query, hits, explanations, took_ms=took_ms, max_bytes=max_bytes)


def _whole_texts(collection: Collection, hits: Sequence[Hit]) -> Iterator[str]:
    """Yield the texts of hits, a few of which are in memory at a time."""
    ids: list[str] = []
    characters = 0
    for index, hit in enumerate(hits, start=1):
        ids.append(hit.document.id)
        characters += text_length(hit.document)
        if characters >= CHARACTERS_AT_ONCE or index == len(hits):
            documents = collection.get_many(ids)
            yield from (documents[doc_id].text if doc_id in documents else "" for doc_id in ids)
            ids, characters = [], 0


def _matched_terms(model: Model, hits: Sequence[Hit]) -> list[set[str]]:
    """Return the terms of the query's words that each hit has."""
    words = {word for hit in hits for word in hit.matched or ()}
    if not words or model.features is None:
        return [set() for _ in hits]
    analyzer = model.features.analyzer.without_stop_words()
    terms = {word: analyzer.terms(word) for word in words}
    return [{term for word in hit.matched or () for term in terms[word]} for hit in hits]


def _explained_hit(text: str, words: HitWords) -> Json:
    return {"fragments": _fragments(text, words.words, SNIPPET_CHARACTERS, matched=words.matched)}


def search_to_json(
    bits: int,
    query: SearchRequest | SimilarRequest,
    hits: Hits,
    explanations: Iterable[Json] = (),
    *,
    took_ms: float,
    max_bytes: int,
) -> bytes:
    """Return the JSON body of a search response."""
    rows = hits_to_json(hits[query.offset :], max_bytes=max_bytes)
    for row, explanation in zip(rows, explanations, strict=False):
        row.update(explanation)
    return json_bytes(
        {
            "query": None if query.id is not None else _query_text(query),
            "id": query.id,
            "bits": bits,
            "took_ms": took_ms,
            "note": hits.note,
            "hits": rows,
        }
    )


def _query_text(query: SearchRequest | SimilarRequest) -> str | None:
    return query.text if isinstance(query, SearchRequest) else None


def hits_to_json(hits: Sequence[Hit], *, max_bytes: int) -> list[Json]:
    """Return hits as JSON values; 413 if their texts alone exceed `max_bytes`."""
    check_response_size(sum(len(hit.document.text) for hit in hits), max_bytes)
    return [{**hit_to_json(hit), "length": text_length(hit.document)} for hit in hits]


def explanation_to_json(model: Model, query: str, hit: str, *, query_vector: Any = None) -> Json:
    """Explain a hit, and return the explanation with all bits as JSON values."""
    explanation = explain(model, query, hit, query_vector=query_vector)
    return {
        "note": explanation.note,
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
        "query_fragments": _fragments(query, _net(explanation.query_words), EXPLANATION_CHARACTERS),
        "hit_fragments": _fragments(hit, _net(explanation.hit_words), EXPLANATION_CHARACTERS),
    }


def _fragments(
    text: str,
    contributions: Sequence[WordContribution],
    characters: int,
    *,
    matched: Mapping[str, Sequence[Span]] | None = None,
) -> list[Json]:
    """Return pieces of a text; the weight of a word is its net contribution."""
    pieces = marked(text, contributions, width=characters, matched=matched, min_weight=MIN_WEIGHT)
    return [_fragment_to_json(piece) for piece in pieces]


def _net(contributions: Sequence[WordContribution]) -> list[WordContribution]:
    """Subtract what words contribute to differing bits, to get how much they moved the code to the other."""
    return [
        WordContribution(word.word, word.agreeing - word.differing, 0.0, word.spans) for word in contributions
    ]


def _fragment_to_json(piece: Fragment) -> Json:
    """Return a fragment without what is 0 or false, which most of them are."""
    value: Json = {"text": piece.text}
    if piece.weight:
        value["weight"] = round(piece.weight, 2)
    if piece.is_matched:
        value["matched"] = True
    return value


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


def get_services(request: Request) -> dict[str, CollectionService]:
    """Return all collections of the server, by name."""
    services: dict[str, CollectionService] = request.app.state.services
    return services


Name = Annotated[str, Path(description="The name of a collection.")]


async def get_service(request: Request, name: Name) -> CollectionService:
    """Return a collection by name, or raise a 404 error."""
    services = get_services(request)
    if name not in services:
        raise ApiError(404, "not-found", f"there is no collection {quote(name)}{suggest(name, services)}")
    return services[name]


Service = Annotated[CollectionService, Depends(get_service)]


async def get_writable_service(request: Request, service: Service) -> CollectionService:
    """Return a collection by name, or raise a 403 error if the request may only read."""
    if not request.state.may_write:
        raise ApiError(403, "forbidden", "read-only access: send a token with the right to write")
    return service


WritableService = Annotated[CollectionService, Depends(get_writable_service)]
