"""How often one address may ask: a bucket of tokens that fills again as time goes by."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable

MOST_ADDRESSES = 10_000
BURST_SECONDS = 2.0  # of requests may come at once


class Rate:
    """Counts the requests of each address."""

    def __init__(self, per_second: float, *, clock: Callable[[], float]) -> None:
        self._per_second, self._clock = per_second, clock
        self._most = max(1.0, BURST_SECONDS * per_second)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # what is left, and as of when

    def wait_of(self, address: str) -> int:
        """Count a request; return 0, or after how many whole seconds the next may come."""
        if not self._per_second:
            return 0
        now = self._clock()
        left, since = self._buckets.pop(address, (self._most, now))
        left = min(self._most, left + (now - since) * self._per_second)
        allowed = left >= 1.0
        self._buckets[address] = (left - 1.0 if allowed else left, now)
        if len(self._buckets) > MOST_ADDRESSES:
            self._buckets.popitem(last=False)
        return 0 if allowed else math.ceil((1.0 - left) / self._per_second)
