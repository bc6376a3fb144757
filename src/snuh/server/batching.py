"""Searches that come at the same time share one reading of the codes.

Nobody waits for others to come: a thread takes whatever has gathered while it was busy with those before.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeAlias

from snuh.server.asks import SearchAsk
from snuh.server.lane import Lane
from snuh.server.refusals import unavailable

# An answer for each, or what to raise.
Answer: TypeAlias = bytes | Exception
Answers: TypeAlias = Callable[[Sequence[SearchAsk]], Sequence[Answer]]

MOST_AT_ONCE = 32  # as many as share a reading of the codes


class Batching:
    """Gathers searches for one thread."""

    def __init__(self, lane: Lane, answers: Answers, *, most_waiting: int) -> None:
        self._lane, self._answers, self._most = lane, answers, most_waiting
        self._waiting: deque[tuple[SearchAsk, asyncio.Future[bytes]]] = deque()
        self._turn = threading.Lock()
        self._is_busy = False

    async def answer(self, ask: SearchAsk) -> bytes:
        """Return the answer to a search, found together with others."""
        if len(self._waiting) >= self._most:
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
                taken = [self._waiting.popleft() for _ in range(min(MOST_AT_ONCE, len(self._waiting)))]
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
