"""Dropping only as many documents as a target asks for, the most similar first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from snuh.duplicates.result import Duplicates

STEPS = 256  # thresholds between the one given and 1; what one of them drops too many is kept again


def strictest_enough(find: Callable[[float], Duplicates], loosest: Duplicates, *, drops: int) -> Duplicates:
    """Return what is found at a threshold that drops at least `drops`, where the next stricter one does not.

    Args:
        find: finds duplicates at a threshold.
        loosest: what it finds at the lowest threshold allowed, returned where even that drops too few.
        drops: how many documents to drop, at least 1.
    """
    lowest = loosest.threshold
    found, enough, too_strict = loosest, 0, STEPS + 1
    while _dropped(found) >= drops and too_strict - enough > 1:
        # The first look is at 1: copies alone are often enough, and cost next to nothing.
        step = STEPS if too_strict > STEPS else (enough + too_strict) // 2
        stricter = find(lowest + (1.0 - lowest) * step / STEPS)
        if _dropped(stricter) >= drops:
            found, enough = stricter, step
        else:
            too_strict = step
    return found


def drop_most_similar(found: Duplicates, *, drops: int, rank: NDArray[np.int64]) -> Duplicates:
    """Keep again what was dropped beyond `drops`: the least similar, among equals the low ranks."""
    dropped = np.flatnonzero(~found.kept)
    by_similarity = dropped[np.lexsort((-rank[dropped], -found.similarity[dropped]))]
    back = by_similarity[drops:]
    representative, similarity = found.representative.copy(), found.similarity.copy()
    representative[back] = back
    similarity[back] = 1.0
    least = min(similarity[by_similarity[:drops]], default=1.0)
    return replace(found, representative=representative, similarity=similarity, threshold=float(least))


def _dropped(found: Duplicates) -> int:
    return int((~found.kept).sum())
