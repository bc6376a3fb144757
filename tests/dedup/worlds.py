"""Helpers for the tests of signatures."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from snuh.dedup.signatures import Signatures


def share_a_token(signatures: Signatures) -> np.ndarray:
    """Return which pairs of documents have a token in common."""
    sets = [set(signatures.tokens[a:b].tolist()) for a, b in pairwise(signatures.indptr)]
    return np.array([[bool(left & right) for right in sets] for left in sets])


def some_rows(seed: int, *, docs: int) -> np.ndarray:
    """Return sparse or dense rows of 12 words, the first two equal and none empty."""
    rng = np.random.default_rng(seed)
    dense = rng.random((docs, 12)) * (rng.random((docs, 12)) < rng.choice([0.2, 0.5, 0.9]))
    dense[:, 0] += 1e-3
    dense[1] = dense[0]
    return dense
