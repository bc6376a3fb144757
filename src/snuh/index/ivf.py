"""Approximate search by an inverted file (IVF), as in faiss: a code is in the list of its nearest centroid.

The index stores row numbers only, four bytes per document; the codes stay where they are and are passed to
each search.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snuh.codes import check_codes
from snuh.errors import InputError
from snuh.index.flat import (
    PLAIN_SECONDS,
    Codes,
    Mask,
    SearchResult,
    check_allowed,
    check_query,
    check_search,
    merge,
    read_only,
    run_in_threads,
    scan,
    scan_many,
    split_rows,
    widest_words,
)
from snuh.index.kernels_numpy import KERNELS

SAMPLE_PER_CENTROID = 64
ITERATIONS = 6
CHUNK_ROWS = 1 << 14
MAX_SCANNED_FRACTION = 1 / 16  # of the rows: above it a sequential scan of all is faster than reading lists
RECALL_QUERIES = 200


@dataclass(frozen=True, slots=True)
class IVF:
    """An inverted file over an array of codes that is stored elsewhere."""

    centroids: Codes  # (lists, bytes), at least one: codes may be added to an index of none
    offsets: NDArray[np.int64]  # (lists + 1,): list i is rows[offsets[i] : offsets[i + 1]]
    rows: NDArray[np.int32]  # (documents,), ascending in each list

    @classmethod
    def build(cls, codes: Codes, *, n_lists: int | None = None, seed: int = 0) -> IVF:
        """Learn centroids and assign each code to the list of its nearest centroid.

        Args:
            codes: (documents, bytes), at most 2 ** 31 - 1 of them.
            n_lists: maximum number of lists; twice the square root of the documents by default.
            seed: of the sample that the centroids are learnt from. Equal seeds build equal indexes.
        """
        codes = check_codes(codes)
        if n_lists is None:
            n_lists = max(1, round(2 * len(codes) ** 0.5))
        if n_lists < 1:
            raise InputError(f"n_lists must be at least 1, got {n_lists}")
        if len(codes) > np.iinfo(np.int32).max:
            raise InputError(f"an IVF index holds at most 2 ** 31 - 1 codes, got {len(codes)}")
        centroids = find_centroids(codes, count=n_lists, rng=np.random.default_rng(seed))
        return cls.from_assignments(centroids, nearest_centroids(codes, centroids))

    @classmethod
    def from_assignments(cls, centroids: Codes, assignments: NDArray[np.int32]) -> IVF:
        """Build an index from its centroids and the list number of each row (documents,)."""
        offsets = np.zeros(len(centroids) + 1, dtype=np.int64)
        np.cumsum(np.bincount(assignments, minlength=len(centroids)), out=offsets[1:])
        return cls(centroids, offsets, np.argsort(assignments, kind="stable").astype(np.int32))

    def assignments(self) -> NDArray[np.int32]:
        """Return the list number of each row (documents,)."""
        numbers = np.arange(len(self.centroids), dtype=np.int32)
        assignments = np.empty(len(self.rows), dtype=np.int32)
        assignments[self.rows] = np.repeat(numbers, np.diff(self.offsets))
        return assignments

    def search(
        self,
        query: Codes,
        codes: Codes,
        *,
        k: int,
        n_probe: int,
        allowed: Mask | None = None,
        radius: int | None = None,
        nearest_lists: NDArray[np.int64] | None = None,
    ) -> SearchResult:
        """Find the k nearest codes in the `n_probe` nearest lists, and in further lists until there are k.

        Args:
            query: one packed code (bytes,).
            codes: the codes that the index was built on.
            k: maximum number of rows to return, at least 1.
            n_probe: minimum number of lists to read. If they hold more than a sixteenth of the rows, all
                rows are scanned.
            allowed: (documents,), mask of the rows to consider; all by default.
            radius: maximum distance of a result; unlimited by default. It is applied last: further lists are
                read only if fewer than k rows of the nearest ones are allowed.
            nearest_lists: the `n_probe` nearest lists, if already known: `scan_many` finds those of many
                queries in less time.
        """
        query, codes = check_query(query), check_codes(codes)
        radius = check_search(query[None], codes, k=k, radius=radius)
        mask, k = check_allowed(allowed, len(codes)), min(k, max(1, len(codes)))
        self._check(codes, n_probe)
        words, code_words = widest_words(query[None])[0], widest_words(codes).reshape(-1)
        arrays = (read_only(self.rows), read_only(self.offsets))
        histogram = np.zeros(codes.shape[1] * 8 + 1, dtype=np.int64)
        state = np.array([0, len(histogram) - 1])
        parts: list[SearchResult] = []
        lists_read = rows_read = 0
        while True:
            if nearest_lists is None or lists_read:
                nearest_lists = scan(query, self.centroids, k=n_probe).rows
            lists = nearest_lists[lists_read:]
            size = int((self.offsets[lists + 1] - self.offsets[lists]).sum())
            lists_read, rows_read = lists_read + len(lists), rows_read + size
            if rows_read > MAX_SCANNED_FRACTION * len(codes):
                return scan(query, codes, k=k, allowed=allowed, radius=radius)
            kernels = KERNELS(PLAIN_SECONDS * size * codes.shape[1])
            found = kernels.scan_lists(words, code_words, mask, *arrays, lists, size, k, histogram, state)
            parts.append(SearchResult(*found))
            if state[0] >= k or lists_read == len(self.centroids):
                result = merge(parts, k=k)
                is_near = result.distances <= radius
                return SearchResult(result.rows[is_near], result.distances[is_near])
            n_probe *= 2

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of the index by name, for saving."""
        return {"centroids": self.centroids, "offsets": self.offsets, "rows": self.rows}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> IVF:
        """Restore an index from `arrays()`; raise InputError if the arrays are inconsistent."""
        expected = {"centroids": (np.uint8, 2), "offsets": (np.int64, 1), "rows": (np.int32, 1)}
        for name, (dtype, dimensions) in expected.items():
            if name not in arrays or arrays[name].dtype != dtype or arrays[name].ndim != dimensions:
                raise InputError(f"an IVF index needs {name} of {np.dtype(dtype)} in {dimensions} dimensions")
        centroids, offsets, rows = (np.ascontiguousarray(arrays[name]) for name in expected)
        if not len(centroids):
            raise InputError("an IVF index needs at least one list: build it again")
        fits = len(offsets) == len(centroids) + 1 and offsets[0] == 0 and offsets[-1] == len(rows)
        # Any other row or offset would make the kernel read memory outside the codes.
        ascends = not (np.diff(offsets) < 0).any()
        if not (fits and ascends and (rows >= 0).all() and (rows < len(rows)).all()):
            raise InputError("the lists of the IVF index do not match its rows: build it again")
        return cls(centroids, offsets, rows)

    def _check(self, codes: Codes, n_probe: int) -> None:
        if n_probe < 1:
            raise InputError(f"n_probe must be at least 1, got {n_probe}")
        if codes.shape != (len(self.rows), self.centroids.shape[1]):
            raise InputError(
                f"the IVF index was built on {len(self.rows)} codes of {self.centroids.shape[1] * 8} bits, "
                f"got {len(codes)} of {codes.shape[1] * 8}: build it again"
            )


def find_centroids(codes: Codes, *, count: int, rng: np.random.Generator) -> Codes:
    """Return 1 to `count` centroids (centroids, bytes), learnt from a sample by k-majority.

    k-majority is k-means for binary codes: Hamming distances, and a centroid's bit is the majority of its
    members'. The k-means of the neighbour graph works on unit vectors with cosines and means.
    """
    if not len(codes):
        return np.zeros((1, codes.shape[1]), dtype=np.uint8)
    size = min(len(codes), SAMPLE_PER_CENTROID * count)
    sample = codes[np.sort(rng.choice(len(codes), size=size, replace=False))]
    # Many documents may share a code, and of two equal centroids one would stay without members.
    distinct = np.unique(sample, axis=0)
    centroids = distinct[rng.permutation(len(distinct))[:count]]
    for _ in range(ITERATIONS):
        moved = _majorities(sample, nearest_centroids(sample, centroids), centroids)
        if np.array_equal(moved, centroids):
            break
        centroids = moved
    return centroids


def nearest_centroids(codes: Codes, centroids: Codes) -> NDArray[np.int32]:
    """Return the index of the nearest centroid of each code; ties go to the lower index."""
    assignments = np.empty(len(codes), dtype=np.int32)
    words, centroid_words = widest_words(codes), widest_words(centroids).reshape(-1)
    kernels = KERNELS(PLAIN_SECONDS * codes.size * len(centroids))
    run_in_threads(
        lambda chunk: kernels.assign(words[slice(*chunk)], centroid_words, assignments[slice(*chunk)]),
        split_rows(len(codes), limit=CHUNK_ROWS),
    )
    return assignments


def _majorities(codes: Codes, assignments: NDArray[np.int32], centroids: Codes) -> Codes:
    """Return each centroid moved to the bitwise majority of its codes; one without codes stays."""
    order = np.argsort(assignments, kind="stable")
    used, starts, sizes = np.unique(assignments[order], return_index=True, return_counts=True)
    bits = np.unpackbits(codes[order], axis=1)
    ones = np.add.reduceat(bits, starts, axis=0, dtype=np.int32)  # (centroids with codes, bits)
    moved = centroids.copy()
    moved[used] = np.packbits(2 * ones > sizes[:, None], axis=1)
    return moved


def measure_recall(
    ivf: IVF, codes: Codes, *, k: int, n_probe: int, sample: int = RECALL_QUERIES, seed: int = 0
) -> float:
    """Return the fraction of the exact k nearest codes that a search finds, on a sample of codes as queries.

    A row counts if its distance is at most that of the exact k-th, so ties at that distance do not matter.
    """
    return _Recall(codes, k=k, sample=sample, seed=seed).measure(ivf, n_probe=n_probe)


def choose_n_probe(
    ivf: IVF,
    codes: Codes,
    *,
    k: int,
    target_recall: float = 0.99,
    sample: int = RECALL_QUERIES,
    seed: int = 0,
) -> tuple[int, float]:
    """Return the smallest power of two for `n_probe` that reaches the target recall, and its recall."""
    if not 0 < target_recall <= 1:
        raise InputError(f"target_recall must be above 0 and at most 1, got {target_recall}")
    queries = _Recall(codes, k=k, sample=sample, seed=seed)
    n_probe = 1
    while (recall := queries.measure(ivf, n_probe=n_probe)) < target_recall and n_probe < len(ivf.centroids):
        n_probe *= 2
    return n_probe, recall


class _Recall:
    """A sample of the codes as queries, and their exact results."""

    def __init__(self, codes: Codes, *, k: int, sample: int, seed: int) -> None:
        if sample < 1:
            raise InputError(f"sample must be at least 1, got {sample}")
        self._codes = check_codes(codes)
        self._k = k
        rows = np.random.default_rng(seed).choice(len(codes), size=min(sample, len(codes)), replace=False)
        self._queries = self._codes[np.sort(rows)]
        self._exact = scan_many(self._queries, self._codes, k=k)

    def measure(self, ivf: IVF, *, n_probe: int) -> float:
        """Return the recall of a search; 1 if there is nothing to find."""
        right = total = 0
        for query, exact in zip(self._queries, self._exact, strict=True):
            result = ivf.search(query, self._codes, k=self._k, n_probe=n_probe)
            right += int(np.count_nonzero(result.distances <= exact.distances[-1]))
            total += len(exact.rows)
        return right / total if total else 1.0
