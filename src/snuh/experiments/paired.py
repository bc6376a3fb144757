"""Is one method better than another? Differences where all else is the same, with an interval."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95
FEWEST = 3  # differences from which on an interval is believed


@dataclass(frozen=True)
class Difference:
    """The mean of some differences, and the interval that holds it with 95 % confidence (Student's t)."""

    mean: float
    low: float
    high: float
    count: int

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves out 0, and is one of more than two differences."""
        return self.count >= FEWEST and (self.low > 0 or self.high < 0)


def difference(gaps: Sequence[float]) -> Difference | None:
    """Summarise differences that do not hang on each other; None where there are fewer than two."""
    from scipy.stats import t

    if len(gaps) < 2:
        return None
    mean = statistics.mean(gaps)
    error = statistics.stdev(gaps) / len(gaps) ** 0.5
    reach = float(t.ppf((1 + CONFIDENCE) / 2, len(gaps) - 1)) * error
    return Difference(mean, mean - reach, mean + reach, len(gaps))
