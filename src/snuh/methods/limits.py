"""What numbers a parameter may be, checked with one message for all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from snuh.errors import InputError


@dataclass(frozen=True)
class Limit:
    """A range of numbers, from 0 where nothing else is said."""

    above: float | None = None  # strictly; without it 0 is allowed
    below: float = np.inf  # strictly, also once it is a float32
    whole: bool = False
    optional: bool = False  # None stands for a value that the method chooses

    def check(self, name: str, value: object) -> None:
        """Raise InputError where the value is not within the limit."""
        if value is None and self.optional:
            return
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float | np.number)
            or not np.isfinite(value)
        ):
            raise InputError(f"{name} must be a number, got {value!r}")
        if self.whole and not isinstance(value, int | np.integer):
            raise InputError(f"{name} must be a whole number, got {value}")
        if value < 0 or (self.above is not None and value <= self.above):
            least = "0 or more" if self.above is None else f"above {self.above:g}"
            raise InputError(f"{name} must be {least}, got {value}")
        if not np.float32(value) < self.below:
            raise InputError(f"{name} must be below {self.below:g}, got {value}")


def check_neighbors(neighbors: int, docs: int) -> None:
    """Raise InputError where there are not more documents than neighbours asked for."""
    if docs <= neighbors:
        raise InputError(
            f"expected more documents than neighbors ({neighbors}), got n_samples = {docs}: "
            "add documents or set neighbors lower"
        )
