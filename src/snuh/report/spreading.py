"""Keeping labels from lying upon each other."""

from __future__ import annotations

from collections.abc import Sequence


def spread(places: Sequence[float], *, gap: float, low: float, high: float) -> list[float]:
    """Move places as little as it takes to be `gap` apart, in their order, between `low` and `high`.

    Where there are too many for that, they are evenly apart between the ends.
    """
    if not places:
        return []
    gap = min(gap, (high - low) / max(1, len(places) - 1))
    order = sorted(range(len(places)), key=lambda one: places[one])
    # Groups of labels that touch, each as (its members, the middle that they would like best).
    groups: list[tuple[list[int], float]] = []
    for one in order:
        members, middle = [one], _inside(places[one], 1, gap, low, high)
        while groups and groups[-1][1] + len(groups[-1][0]) * gap / 2 > middle - len(members) * gap / 2:
            before, _ = groups.pop()
            members = before + members
            wanted = sum(places[member] for member in members) / len(members)
            middle = _inside(wanted, len(members), gap, low, high)
        groups.append((members, middle))
    moved = [0.0] * len(places)
    for members, middle in groups:
        for rank, member in enumerate(members):
            moved[member] = middle + (rank - (len(members) - 1) / 2) * gap
    return moved


def _inside(middle: float, count: int, gap: float, low: float, high: float) -> float:
    reach = (count - 1) * gap / 2
    return min(max(middle, low + reach), high - reach)
