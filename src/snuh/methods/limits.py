"""Ranges of numeric parameters, checked with the same messages for all methods."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from snuh.errors import InputError


@dataclass(frozen=True)
class Range:
    """The valid values of a numeric parameter; never negative."""

    above: float | None = None  # exclusive lower bound; None: 0 is valid
    below: float = np.inf  # exclusive upper bound, also after rounding to float32
    integer: bool = False
    optional: bool = False  # whether None is valid: the method resolves it

    def check(self, name: str, value: object) -> None:
        """Raise InputError if the value is not in the range."""
        if value is None and self.optional:
            return
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float | np.number)
            or not np.isfinite(value)
        ):
            raise InputError(f"{name} must be a number, got {value!r}")
        if self.integer and not isinstance(value, int | np.integer):
            raise InputError(f"{name} must be an integer, got {value}")
        if value < 0 or (self.above is not None and value <= self.above):
            minimum = "0 or more" if self.above is None else f"above {self.above:g}"
            raise InputError(f"{name} must be {minimum}, got {value}")
        if not np.float32(value) < self.below:
            raise InputError(f"{name} must be below {self.below:g}, got {value}")


def check_neighbors(neighbors: int, docs: int) -> None:
    """Raise InputError unless there are more documents than neighbours."""
    if docs <= neighbors:
        raise InputError(
            f"expected more documents than neighbors ({neighbors}), got n_samples = {docs}: "
            "add documents or set neighbors lower"
        )
