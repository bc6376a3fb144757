"""How much of the exact answer an approximate search gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Near(Protocol):
    """A document found."""

    @property
    def distance(self) -> int:
        """How far from the query."""


def share_found(exact: Sequence[Sequence[Near]], found: Sequence[Sequence[Near]]) -> float:
    """Return the share of the exact answers to some queries that was found; 1 where there is nothing.

    A document counts where it is no further than the last of the exact answer: which of several at that
    distance come back is of no interest.
    """
    right = sum(
        sum(one.distance <= best[-1].distance for one in some)
        for best, some in zip(exact, found, strict=True)
        if best
    )
    wanted = sum(map(len, exact))
    return right / wanted if wanted else 1.0
