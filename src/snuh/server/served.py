"""A collection as the server holds it: a lane for each kind of work, and what is worth remembering."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from snuh.collection import Collection
from snuh.server.asks import SearchAsk
from snuh.server.batching import Answer, Batching
from snuh.server.hits import answer_texts
from snuh.server.lane import Lane
from snuh.server.metrics import Metrics
from snuh.server.settings import Limits


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
                self._lanes.append(Lane(folder, most_waiting=limits.waiting))
        except BaseException:
            self.close()
            raise
        self._searching, self.reading, self.writing = self._lanes
        self._batching = Batching(self._searching, self._answer, most_waiting=limits.waiting)

    async def search(self, ask: SearchAsk) -> bytes:
        """Answer a search for a text."""
        return await self._batching.answer(ask)

    def _answer(self, asks: Sequence[SearchAsk]) -> list[Answer]:
        self._metrics.count_batch(len(asks))
        return answer_texts(self._searching.collection, asks, most_bytes=self.limits.answer_bytes)

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
