"""Exact search for the codes nearest to a query, in Hamming distance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from snuh.codes import check_codes, count_distances, hamming_blocks
from snuh.errors import InputError


@dataclass(frozen=True, slots=True)
class Neighbors:
    """The rows of the nearest codes and their distances, each (queries, k), nearest first, ties by row."""

    rows: NDArray[np.int64]
    distances: NDArray[np.uint16]


def nearest(query_codes: NDArray[np.uint8], codes: NDArray[np.uint8], *, k: int) -> Neighbors:
    """Find the k nearest codes of each query, ordered by (distance, row); all where there are fewer."""
    if k < 1:
        raise InputError(f"k must be at least 1, got {k}")
    query_codes, codes = check_codes(query_codes), check_codes(codes)
    k = min(k, len(codes))
    rows = np.empty((len(query_codes), k), dtype=np.int64)
    found = np.empty((len(query_codes), k), dtype=np.uint16)
    if not k:
        return Neighbors(rows, found)
    for block, distances in hamming_blocks(query_codes, codes):
        # Counting says where the k-th distance lies, so nothing beyond it is ever sorted.
        reached = count_distances(distances, bits=codes.shape[1] * 8).cumsum(axis=1)
        cuts = (reached >= k).argmax(axis=1)
        for query, row, cut in zip(range(block.start, block.stop), distances, cuts, strict=True):
            rows[query] = _select(row, cut=cut, k=k)
            found[query] = row[rows[query]]
    return Neighbors(rows, found)


def _select(distances: NDArray[np.uint16], *, cut: np.int64, k: int) -> NDArray[np.int64]:
    """Return the k rows nearest to one query, given the distance of the k-th."""
    closer = np.flatnonzero(distances < cut)
    tied = np.flatnonzero(distances == cut)[: k - len(closer)]
    order = np.argsort(distances[closer], kind="stable")  # stable: equal distances stay in order of row
    return np.concatenate([closer[order], tied])
