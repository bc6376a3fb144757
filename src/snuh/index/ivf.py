"""An inverted index over an array of codes: which rows lie around which centre."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snuh._numba import njit
from snuh.codes import check_codes
from snuh.errors import InputError
from snuh.index.flat import (
    Found,
    best,
    check_allowed,
    check_query,
    check_search,
    read_only,
    run_in_threads,
    scan,
    scan_many,
    split_rows,
    widest_words,
)
from snuh.index.hamming_kernels import GROUP, hamming_distances, read_lists

# Centres for binary codes by k-majority: k-means in which a centre's bit is that of most of its codes.

SAMPLE_PER_CENTROID = 64
ROUNDS = 6
PART_ROWS = 1 << 14

Codes = NDArray[np.uint8]


def find_centroids(codes: Codes, *, count: int, rng: np.random.Generator) -> Codes:
    """Return at most `count` centres (centres, bytes) of contiguous codes, learnt on a sample of them."""
    size = min(len(codes), SAMPLE_PER_CENTROID * count)
    sample = codes[np.sort(rng.choice(len(codes), size=size, replace=False))]
    # Two centres on one code would be one too many, and many documents may share a code.
    distinct = np.unique(sample, axis=0)
    centroids = distinct[rng.permutation(len(distinct))[:count]]
    for _ in range(ROUNDS):
        moved = _majorities(sample, nearest_centroids(sample, centroids), centroids)
        if np.array_equal(moved, centroids):
            break
        centroids = moved
    return centroids


def nearest_centroids(codes: Codes, centroids: Codes) -> NDArray[np.int32]:
    """Return the number of the nearest centre for each code; ties go to the lower number."""
    assignments = np.empty(len(codes), dtype=np.int32)
    words, centroid_words = widest_words(codes), widest_words(centroids).reshape(-1)
    run_in_threads(
        lambda part: _assign(words[slice(*part)], centroid_words, assignments[slice(*part)]),
        split_rows(len(codes), limit=PART_ROWS),
    )
    return assignments


def _majorities(codes: Codes, assignments: NDArray[np.int32], centroids: Codes) -> Codes:
    """Return the centres moved to the majority of their codes, bit by bit; one without codes stays."""
    order = np.argsort(assignments, kind="stable")
    own, starts, sizes = np.unique(assignments[order], return_index=True, return_counts=True)
    bits = np.unpackbits(codes[order], axis=1)
    ones = np.add.reduceat(bits, starts, axis=0, dtype=np.int32)  # (centres with codes, bits)
    moved = centroids.copy()
    moved[own] = np.packbits(2 * ones > sizes[:, None], axis=1)
    return moved


# numba has no type stubs, and the kernel's types are those of its arguments.
@njit()
def _assign(codes, centroids, assignments):  # type: ignore[no-untyped-def]
    """Write the nearest of the centres (centres * words,) to each of the codes (rows, words)."""
    count = len(centroids) // codes.shape[1]
    near = np.empty(GROUP, dtype=np.uint16)
    for row in range(len(codes)):
        best = np.uint16(65535)
        for first in range(0, count, GROUP):
            size = min(GROUP, count - first)
            hamming_distances(codes[row], centroids, first, size, near)
            lowest = near[0]
            for j in range(1, size):
                lowest = min(lowest, near[j])
            if lowest < best:
                best = lowest
                j = 0
                while near[j] != lowest:
                    j += 1
                assignments[row] = first + j


SCAN_FROM = 1 / 16  # share of the rows above which reading all in order is faster than reading lists


@dataclass(frozen=True, slots=True)
class IVF:
    """Lists of rows, four bytes a document; the codes stay where they are and come with each search."""

    centroids: Codes  # (lists, bytes)
    starts: NDArray[np.int64]  # (lists + 1,): list i is rows[starts[i] : starts[i + 1]]
    rows: NDArray[np.int32]  # (documents,), ascending in each list

    @classmethod
    def build(cls, codes: Codes, *, lists: int | None = None, seed: int = 0) -> IVF:
        """Put each code (documents, bytes) into the list of its nearest centre.

        Args:
            codes: the codes, at most 2 ** 31 - 1.
            lists: how many lists to make, at most; twice the root of the documents by default.
            seed: for the sample that the centres are learnt on. Equal seeds make equal clusters.
        """
        codes = check_codes(codes)
        if lists is None:
            lists = max(1, round(2 * len(codes) ** 0.5))
        if lists < 1:
            raise InputError(f"lists must be at least 1, got {lists}")
        if len(codes) > np.iinfo(np.int32).max:
            raise InputError(f"clusters hold at most 2 ** 31 - 1 codes, got {len(codes)}")
        centroids = find_centroids(codes, count=lists, rng=np.random.default_rng(seed))
        return cls.from_assignments(centroids, nearest_centroids(codes, centroids))

    @classmethod
    def from_assignments(cls, centroids: Codes, assignments: NDArray[np.int32]) -> IVF:
        """Make clusters of centres and of the number of each row's centre."""
        starts = np.zeros(len(centroids) + 1, dtype=np.int64)
        np.cumsum(np.bincount(assignments, minlength=len(centroids)), out=starts[1:])
        return cls(centroids, starts, np.argsort(assignments, kind="stable").astype(np.int32))

    def assignments(self) -> NDArray[np.int32]:
        """Return the number of each row's centre (documents,)."""
        assignments = np.empty(len(self.rows), dtype=np.int32)
        assignments[self.rows] = np.repeat(
            np.arange(len(self.centroids), dtype=np.int32), np.diff(self.starts)
        )
        return assignments

    def search(
        self,
        query: Codes,
        codes: Codes,
        *,
        k: int,
        probes: int,
        allowed: NDArray[np.bool_] | None = None,
        radius: int | None = None,
        nearest: NDArray[np.int64] | None = None,
    ) -> Found:
        """Find the k nearest codes in the `probes` lists nearest to the query, and in more until k are found.

        Args:
            query: one packed code (bytes,).
            codes: the codes that the clusters were built on.
            k: most rows to return, at least 1.
            probes: lists to read at least; where they hold much of all rows, all are read.
            allowed: (documents,), which rows may be found; all by default.
            radius: the largest distance that may be found; any by default. It shortens the answer, and more
                lists are read only where fewer than k rows are allowed in the nearest ones.
            nearest: the `probes` lists nearest to the query, where they are known: `scan_many` finds those of
                many queries in less time.
        """
        query, codes = check_query(query), check_codes(codes)
        largest = check_search(query[None], codes, k=k, radius=radius)
        mask, k = check_allowed(allowed, len(codes)), min(k, max(1, len(codes)))
        self._check(codes, probes)
        words, code_words = widest_words(query[None])[0], widest_words(codes).reshape(-1)
        counts = np.zeros(codes.shape[1] * 8 + 1, dtype=np.int64)
        state = np.array([0, len(counts) - 1])
        parts: list[tuple[NDArray[np.int64], NDArray[np.uint16]]] = []
        lists_read = rows_read = 0
        while True:
            if nearest is None or lists_read:
                nearest = scan(query, self.centroids, k=probes).rows
            chosen = nearest[lists_read:]
            more = int((self.starts[chosen + 1] - self.starts[chosen]).sum())
            lists_read, rows_read = lists_read + len(chosen), rows_read + more
            if rows_read > SCAN_FROM * len(codes):
                return scan(query, codes, k=k, allowed=allowed, radius=radius)
            lists = (read_only(self.rows), read_only(self.starts), chosen)
            parts.append(read_lists(words, code_words, mask, *lists, more, k, counts, state))
            if state[0] >= k or lists_read == len(self.centroids):
                found = best(parts, k=k)
                near = found.distances <= largest
                return Found(found.rows[near], found.distances[near])
            probes *= 2

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that make up the clusters, by name."""
        return {"centres": self.centroids, "starts": self.starts, "rows": self.rows}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> IVF:
        """Make clusters of what `arrays` returned; InputError where they do not fit together."""
        expected = {"centres": (np.uint8, 2), "starts": (np.int64, 1), "rows": (np.int32, 1)}
        for name, (kind, dimensions) in expected.items():
            if name not in arrays or arrays[name].dtype != kind or arrays[name].ndim != dimensions:
                raise InputError(f"clusters need {name} of {np.dtype(kind)} in {dimensions} dimensions")
        centroids, starts, rows = (np.ascontiguousarray(arrays[name]) for name in expected)
        fits = len(starts) == len(centroids) + 1 and starts[0] == 0 and starts[-1] == len(rows)
        # A row or a start out of place would make the kernel read memory that is not the codes'.
        ascends = not (np.diff(starts) < 0).any()
        if not (fits and ascends and (rows >= 0).all() and (rows < len(rows)).all()):
            raise InputError("the lists of the clusters do not fit their rows: build them again")
        return cls(centroids, starts, rows)

    def _check(self, codes: Codes, probes: int) -> None:
        if probes < 1:
            raise InputError(f"probes must be at least 1, got {probes}")
        if codes.shape != (len(self.rows), self.centroids.shape[1]):
            raise InputError(
                f"the clusters know {len(self.rows)} codes of {self.centroids.shape[1] * 8} bits, "
                f"got {len(codes)} of {codes.shape[1] * 8}: build them again"
            )


# How much of the exact answer the lists give, and how many of them to read for it.

SAMPLE = 200


def measure_recall(
    clusters: IVF, codes: Codes, *, k: int, probes: int, sample: int = SAMPLE, seed: int = 0
) -> float:
    """Return the share of the k nearest codes that a search finds, for some of the codes as queries.

    A row found counts where its distance is at most that of the exact k-th: which of several rows at that
    distance come back is of no interest.
    """
    return _Recall(codes, k=k, sample=sample, seed=seed).of(clusters, probes=probes)


def choose_probes(
    clusters: IVF, codes: Codes, *, k: int, wanted: float = 0.99, sample: int = SAMPLE, seed: int = 0
) -> tuple[int, float]:
    """Return the smallest power of two of lists to read that finds the `wanted` share, and what it finds."""
    if not 0 < wanted <= 1:
        raise InputError(f"wanted must be above 0 and at most 1, got {wanted}")
    recall = _Recall(codes, k=k, sample=sample, seed=seed)
    probes = 1
    while (reached := recall.of(clusters, probes=probes)) < wanted and probes < len(clusters.centroids):
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

    def of(self, clusters: IVF, *, probes: int) -> float:
        """Return the share that a search finds; 1 where there is nothing to find."""
        right = wanted = 0
        for query, exact in zip(self._queries, self._exact, strict=True):
            found = clusters.search(query, self._codes, k=self._k, probes=probes)
            right += int(np.count_nonzero(found.distances <= exact.distances[-1]))
            wanted += len(exact.rows)
        return right / wanted if wanted else 1.0
