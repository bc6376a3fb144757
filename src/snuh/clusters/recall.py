"""How much of the exact answer the lists give, and how many of them to read for it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from snuh.clusters.lists import Clusters
from snuh.codes import check_codes
from snuh.errors import InputError
from snuh.index import scan_many

SAMPLE = 200

Codes = NDArray[np.uint8]


def measure_recall(
    clusters: Clusters, codes: Codes, *, k: int, probes: int, sample: int = SAMPLE, seed: int = 0
) -> float:
    """Return the share of the k nearest codes that a search finds, for some of the codes as queries.

    A row found counts where its distance is at most that of the exact k-th: which of several rows at that
    distance come back is of no interest.
    """
    return _Recall(codes, k=k, sample=sample, seed=seed).of(clusters, probes=probes)


def choose_probes(
    clusters: Clusters, codes: Codes, *, k: int, wanted: float = 0.99, sample: int = SAMPLE, seed: int = 0
) -> tuple[int, float]:
    """Return the smallest power of two of lists to read that finds the `wanted` share, and what it finds."""
    if not 0 < wanted <= 1:
        raise InputError(f"wanted must be above 0 and at most 1, got {wanted}")
    recall = _Recall(codes, k=k, sample=sample, seed=seed)
    probes = 1
    while (reached := recall.of(clusters, probes=probes)) < wanted and probes < len(clusters.centres):
        probes *= 2
    return probes, reached


class _Recall:
    """A sample of the codes and the exact distance of the k-th nearest of each."""

    def __init__(self, codes: Codes, *, k: int, sample: int, seed: int) -> None:
        if sample < 1:
            raise InputError(f"sample must be at least 1, got {sample}")
        self._codes = check_codes(codes)
        self._k = k
        rows = np.random.default_rng(seed).choice(len(codes), size=min(sample, len(codes)), replace=False)
        self._queries = self._codes[np.sort(rows)]
        self._exact = scan_many(self._queries, self._codes, k=k)

    def of(self, clusters: Clusters, *, probes: int) -> float:
        """Return the share that a search finds; 1 where there is nothing to find."""
        right = wanted = 0
        for query, exact in zip(self._queries, self._exact, strict=True):
            found = clusters.search(query, self._codes, k=self._k, probes=probes)
            right += int(np.count_nonzero(found.distances <= exact.distances[-1]))
            wanted += len(exact.rows)
        return right / wanted if wanted else 1.0
