"""What a search for near-duplicates found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Duplicates:
    """For every document whether it is kept, and the kept document that stands for it."""

    representative: NDArray[np.int64]  # (docs,) the row that stands for it: its own where it is kept
    similarity: NDArray[np.float32]  # (docs,) to the representative: 1 where it is kept
    threshold: float
    """The least similarity asked for; with a target, the least that was needed (1 where none was)."""
    codes_compared: int
    """How often two codes were compared; a pair that shares several words counts each time."""
    rows_compared: int
    """How many pairs of documents were compared word by word."""

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Whether each document is kept (docs,)."""
        own: NDArray[np.bool_] = self.representative == np.arange(len(self.representative))
        return own

    @property
    def cluster(self) -> NDArray[np.int64]:
        """The number of each document's cluster (docs,), in the order of their representatives; -1: alone."""
        sizes = np.bincount(self.representative, minlength=len(self.representative))
        number = np.where(sizes > 1, np.cumsum(sizes > 1) - 1, -1)
        return number[self.representative]
