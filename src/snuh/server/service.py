"""A collection as the server holds it: a lane for each kind of work, and what is worth remembering."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

from snuh.collection import Collection
from snuh.collection.results import hit_to_json
from snuh.errors import SnuhError
from snuh.explain import Explanation, WordContribution, explain, marked
from snuh.model import Model
from snuh.search import Hit, unknown_words
from snuh.server.errors import Refusal, check_length, json_bytes, unavailable
from snuh.server.metrics import Metrics
from snuh.server.schemas import SearchAsk, SimilarAsk
from snuh.server.settings import Limits

# A collection with a thread of its own: whoever waits, waits for others of its kind only.

Result = TypeVar("Result")


class Lane:
    """Opens a collection, and does what it is given with it, one after the other."""

    def __init__(self, folder: str, *, max_waiting: int) -> None:
        self.collection = Collection(folder)
        self.thread = ThreadPoolExecutor(1)
        self._waiting, self._limit = 0, max_waiting

    async def run(self, work: Callable[[Collection], Result]) -> Result:
        """Return what the work returns; 503 where too many wait already."""
        if self._waiting >= self._limit:
            raise unavailable("too many requests wait for this collection: try again later")
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self.thread, work, self.collection)
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """End what is under way, and let go of the collection."""
        self.thread.shutdown(cancel_futures=True)
        self.collection.close()


# Searches that come at the same time share one reading of the codes.
#
# Nobody waits for others to come: a thread takes whatever has gathered while it was busy with those before.

# An answer for each, or what to raise.
Answer: TypeAlias = bytes | Exception
Answers: TypeAlias = Callable[[Sequence[SearchAsk]], Sequence[Answer]]

MAX_BATCH = 32  # as many as share a reading of the codes


class Batching:
    """Gathers searches for one thread."""

    def __init__(self, lane: Lane, answers: Answers, *, max_waiting: int) -> None:
        self._lane, self._answers, self._limit = lane, answers, max_waiting
        self._waiting: deque[tuple[SearchAsk, asyncio.Future[bytes]]] = deque()
        self._turn = threading.Lock()
        self._is_busy = False

    async def answer(self, ask: SearchAsk) -> bytes:
        """Return the answer to a search, found together with others."""
        if len(self._waiting) >= self._limit:
            raise unavailable("too many searches wait for this collection: try again later")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bytes] = loop.create_future()
        with self._turn:
            self._waiting.append((ask, future))
            starts, self._is_busy = not self._is_busy, True
        if starts:
            self._lane.thread.submit(self._work, loop)
        return await future

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        """Answer until nobody waits; runs in the thread."""
        while True:
            with self._turn:
                taken = [self._waiting.popleft() for _ in range(min(MAX_BATCH, len(self._waiting)))]
                if not taken:
                    self._is_busy = False
                    return
            try:
                answers: Sequence[Answer] = self._answers([ask for ask, _ in taken])
            except Exception as error:  # a bug: each of them hears of it, and the next ones are answered
                answers = [error] * len(taken)
            loop.call_soon_threadsafe(_deliver, [future for _, future in taken], answers)


def _deliver(futures: Sequence[asyncio.Future[bytes]], answers: Sequence[Answer]) -> None:
    for future, answer in zip(futures, answers, strict=True):
        if future.done():  # whoever asked has gone
            continue
        if isinstance(answer, bytes):
            future.set_result(answer)
        else:
            future.set_exception(answer)


# Hits as JSON, with the words that brought them up where that is asked for.

Json: TypeAlias = dict[str, Any]  # Any: whatever JSON can say
SNIPPET, WHOLE = 160, 2_000  # characters of fragments


def answer_texts(
    collection: Collection, asks: Sequence[SearchAsk], *, max_bytes: int
) -> list[bytes | Exception]:
    """Answer searches for texts; those that ask alike are searched for at once."""
    alike: dict[tuple[Any, ...], list[int]] = {}
    for number, ask in enumerate(asks):
        alike.setdefault(tuple(ask.search_options.values()), []).append(number)
    answers: list[bytes | Exception] = [b""] * len(asks)
    for numbers in alike.values():
        texts = [asks[number].text or "" for number in numbers]
        try:
            found = collection.search_many(texts, **asks[numbers[0]].search_options)
        except SnuhError as error:
            for number in numbers:
                answers[number] = error
            continue
        bits = collection.model.bits
        for number, text, hits in zip(numbers, texts, found, strict=True):
            try:
                answers[number] = (
                    unknown_words(text)
                    if hits is None
                    else search_to_json(bits, asks[number], hits, max_bytes=max_bytes)
                )
            except Refusal as refusal:
                answers[number] = refusal
    return answers


def answer_explained(collection: Collection, ask: SearchAsk | SimilarAsk, *, max_bytes: int) -> bytes:
    """Answer one search, for a text or a document, and tell why where that is asked for."""
    if ask.id is not None:
        hits = collection.similar(ask.id, **ask.search_options)
        text = collection.get(ask.id).text if ask.explain else ""
    else:
        text = getattr(ask, "text", None) or ""
        hits = collection.search(text, **ask.search_options)
    model = collection.model
    reasons = [explain(model, text, hit.document.text) for hit in hits] if ask.explain else []
    return search_to_json(model.bits, ask, hits, reasons, max_bytes=max_bytes)


def search_to_json(
    bits: int,
    ask: SearchAsk | SimilarAsk,
    hits: Sequence[Hit],
    reasons: Sequence[Explanation] = (),
    *,
    max_bytes: int,
) -> bytes:
    """Return the answer to one search."""
    rows = hits_to_json(hits, ask.characters, max_bytes=max_bytes)
    for row, hit, reason in zip(rows, hits, reasons, strict=False):
        row["fragments"] = _fragments(hit.document.text, reason.hit_words, SNIPPET)
        row["words"] = _shares(reason.hit_words)
        row["query_words"] = _shares(reason.query_words)
    query = None if ask.id is not None else getattr(ask, "text", None)
    return json_bytes({"query": query, "id": ask.id, "bits": bits, "hits": rows})


def hits_to_json(hits: Sequence[Hit], characters: int | None, *, max_bytes: int) -> list[Json]:
    """Return hits as plain values; Refusal where their texts alone are too long to be answered."""
    rows = [_hit_to_json(hit, characters) for hit in hits]
    check_length(sum(len(row["text"]) for row in rows), max_bytes)
    return rows


def _hit_to_json(hit: Hit, characters: int | None) -> Json:
    text = hit.document.text
    return {
        **hit_to_json(hit),
        "text": text if characters is None else text[:characters],
        "length": len(text),
    }


def explanation_to_json(model: Model, query: str, hit: str) -> Json:
    """Explain one hit, with all bits."""
    reason = explain(model, query, hit)
    return {
        "distance": reason.distance,
        "bits": [
            {
                "bit": pair.bit,
                "query": pair.query,
                "hit": pair.hit,
                "query_margin": round(pair.query_margin, 6),
                "hit_margin": round(pair.hit_margin, 6),
            }
            for pair in reason.bits
        ],
        "query_words": _shares(reason.query_words),
        "hit_words": _shares(reason.hit_words),
        "query_fragments": _fragments(query, reason.query_words, WHOLE),
        "hit_fragments": _fragments(hit, reason.hit_words, WHOLE),
    }


def _fragments(text: str, shares: Sequence[WordContribution], width: int) -> list[tuple[str, float]]:
    """Return pieces of a text; a word weighs how far it pushed its code towards the other, or away."""
    contributions = [replace(share, agreeing=share.agreeing - share.differing) for share in shares]
    return [(piece.text, round(piece.weight, 4)) for piece in marked(text, contributions, width=width)]


def _shares(shares: Sequence[WordContribution]) -> list[Json]:
    return [
        {
            "word": share.word,
            "agreeing": round(share.agreeing, 6),
            "differing": round(share.differing, 6),
            "spans": share.spans,
        }
        for share in shares
    ]


@dataclass(frozen=True, slots=True)
class _Kept:
    """A value, the version of the collection it was made of, and when."""

    value: Any  # whatever was made
    version: str
    since: float


class Served:
    """Searches, other readings and writing each have their own thread and connection to the store."""

    def __init__(self, name: str, folder: str, *, limits: Limits, metrics: Metrics) -> None:
        self.name, self.folder = name, folder
        self.limits, self._metrics = limits, metrics
        self._remembered: dict[str, _Kept] = {}
        self._lanes: list[Lane] = []
        try:
            for _ in range(3):
                self._lanes.append(Lane(folder, max_waiting=limits.waiting))
        except BaseException:
            self.close()
            raise
        self._searching, self.reading, self.writing = self._lanes
        self._batching = Batching(self._searching, self._answer, max_waiting=limits.waiting)

    async def search(self, ask: SearchAsk) -> bytes:
        """Answer a search for a text."""
        return await self._batching.answer(ask)

    def _answer(self, asks: Sequence[SearchAsk]) -> list[Answer]:
        self._metrics.count_batch(len(asks))
        return answer_texts(self._searching.collection, asks, max_bytes=self.limits.answer_bytes)

    async def remembered(
        self, name: str, make: Callable[[Collection], Any], *, seconds: float = math.inf
    ) -> Any:  # Any: whatever is made
        """Return what `make` makes of the collection, made anew after a write, or after some seconds."""

        def work(collection: Collection) -> Any:
            version, now = collection.version(), time.monotonic()
            kept = self._remembered.get(name)
            if kept is None or kept.version != version or now - kept.since > seconds:
                kept = self._remembered[name] = _Kept(make(collection), version, now)
            return kept.value

        return await self.reading.run(work)

    def close(self) -> None:
        """End all threads."""
        for lane in self._lanes:
            lane.close()
