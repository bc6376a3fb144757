"""Finding repeated ids in eight bytes an id."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RECENT = 65_536


class SeenIds:
    """Tells which ids may have come before, by their 64-bit hash.

    The latest ids are compared at once, older ones block by block; a hash reported here is a suspicion
    (two ids may share one), so the caller looks again at the ids themselves.
    """

    def __init__(self, *, recent: int = RECENT) -> None:
        """Compare ids at once with up to `recent` ids before them."""
        self._limit = recent
        self._recent: set[int] = set()
        self._runs: list[NDArray[np.int64]] = []  # sorted, each larger than the next

    def add(self, identity: str) -> frozenset[int]:
        """Remember an id and return the hashes found twice so far, usually none."""
        digest = hash(identity)
        if digest in self._recent:
            return frozenset((digest,))
        self._recent.add(digest)
        return self.check() if len(self._recent) >= self._limit else frozenset()

    def check(self) -> frozenset[int]:
        """Compare the latest ids with all before them and return the hashes found twice."""
        if not self._runs and len(self._recent) < self._limit:
            return frozenset()
        import numpy as np

        block = np.sort(np.fromiter(self._recent, dtype=np.int64, count=len(self._recent)))
        self._recent.clear()
        repeated: set[int] = set()
        for run in self._runs:
            places = np.minimum(np.searchsorted(run, block), run.size - 1)
            repeated.update(block[run[places] == block].tolist())
        self._runs.append(block)
        while len(self._runs) > 1 and self._runs[-2].size <= self._runs[-1].size:
            merged = np.concatenate([self._runs.pop(), self._runs.pop()])
            merged.sort()
            self._runs.append(merged)
        return frozenset(repeated)
