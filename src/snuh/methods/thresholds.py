"""Where a real value becomes a bit: between the two halves of the training documents."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse

from snuh.graph import group_equal_rows

Floats = npt.NDArray[np.float32]


def distinct_rows(X: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return each row once: many copies of one document are not the middle of a corpus."""
    first = group_equal_rows(X).first
    return X if len(first) == X.shape[0] else X[first]


def medians(values: Floats) -> Floats:
    """Return for each bit of values (rows, bits) one with half of the rows above, and if possible none at it.

    A row at the threshold itself would have its bit by the rounding of its sums.
    """
    ordered = np.sort(values, axis=0)
    below = (len(ordered) - 1) // 2
    above = min(below + 1, len(ordered) - 1)
    middle: Floats = (ordered[below] + ordered[above]) / 2
    return middle
