"""Thresholds that turn real values into bits: the medians of the training documents."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse

from snuh.graph import group_equal_rows

Floats = npt.NDArray[np.float32]


def distinct_rows(X: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return each distinct row once, so that many copies of a document do not shift the medians."""
    first = group_equal_rows(X).first
    return X if len(first) == X.shape[0] else X[first]


def medians(values: Floats) -> Floats:
    """Return the median of each bit of values (rows, bits), between two rows if there is more than one.

    The bit of a row exactly at the threshold would depend on rounding.
    """
    ordered = np.sort(values, axis=0)
    below = (len(ordered) - 1) // 2
    above = min(below + 1, len(ordered) - 1)
    middle: Floats = (ordered[below] + ordered[above]) / 2
    return middle
