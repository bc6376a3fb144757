"""What the tests of signs share."""

from __future__ import annotations

import numpy as np

from snuh.dedup.signatures import Signs


def share_a_sign(signs: Signs) -> np.ndarray:
    """Which pairs of documents have a mark in common."""
    sets = [set(signs.marks[a:b].tolist()) for a, b in zip(signs.indptr, signs.indptr[1:], strict=False)]
    return np.array([[bool(left & right) for right in sets] for left in sets])


def some_rows(seed: int, *, docs: int) -> np.ndarray:
    """Rows of 12 words, few or many of them, the first two alike and none empty."""
    rng = np.random.default_rng(seed)
    dense = rng.random((docs, 12)) * (rng.random((docs, 12)) < rng.choice([0.2, 0.5, 0.9]))
    dense[:, 0] += 1e-3
    dense[1] = dense[0]
    return dense
