"""A collection with a thread of its own: whoever waits, waits for others of its kind only."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from snuh.collection import Collection
from snuh.server.refusals import unavailable

Result = TypeVar("Result")


class Lane:
    """Opens a collection, and does what it is given with it, one after the other."""

    def __init__(self, folder: str, *, most_waiting: int) -> None:
        self.collection = Collection(folder)
        self.thread = ThreadPoolExecutor(1)
        self._waiting, self._most = 0, most_waiting

    async def run(self, work: Callable[[Collection], Result]) -> Result:
        """Return what the work returns; 503 where too many wait already."""
        if self._waiting >= self._most:
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
