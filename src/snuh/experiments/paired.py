"""Is one method better than another? Differences of runs that have all else in common, with an interval."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Difference:
    """The mean difference of pairs, and the interval that holds it with 95 % confidence (Student's t)."""

    mean: float
    low: float
    high: float
    pairs: int

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.low > 0 or self.high < 0


def difference(first: Sequence[float], second: Sequence[float]) -> Difference | None:
    """Compare pairs of figures; None where there are fewer than two pairs."""
    from scipy.stats import t

    gaps = [one - other for one, other in zip(first, second, strict=True)]
    if len(gaps) < 2:
        return None
    mean = statistics.mean(gaps)
    error = statistics.stdev(gaps) / len(gaps) ** 0.5
    reach = float(t.ppf((1 + CONFIDENCE) / 2, len(gaps) - 1)) * error
    return Difference(mean, mean - reach, mean + reach, len(gaps))
