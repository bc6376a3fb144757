"""An inverted index over an array of codes: which rows lie around which centre."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snuh.clusters.majority import find_centres, nearest_centres
from snuh.clusters.reading import read_lists
from snuh.codes import check_codes
from snuh.errors import InputError
from snuh.index import Found, best, check_allowed, check_query, check_search, scan
from snuh.scanning import read_only, widest_words

SCAN_FROM = 1 / 16  # share of the rows above which reading all in order is faster than reading lists

Codes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Clusters:
    """Lists of rows, four bytes a document; the codes stay where they are and come with each search."""

    centres: Codes  # (lists, bytes)
    starts: NDArray[np.int64]  # (lists + 1,): list i is rows[starts[i] : starts[i + 1]]
    rows: NDArray[np.int32]  # (documents,), ascending in each list

    @classmethod
    def build(cls, codes: Codes, *, lists: int | None = None, seed: int = 0) -> Clusters:
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
        centres = find_centres(codes, count=lists, rng=np.random.default_rng(seed))
        return cls.of_owners(centres, nearest_centres(codes, centres))

    @classmethod
    def of_owners(cls, centres: Codes, owners: NDArray[np.int32]) -> Clusters:
        """Make clusters of centres and of the number of each row's centre."""
        starts = np.zeros(len(centres) + 1, dtype=np.int64)
        np.cumsum(np.bincount(owners, minlength=len(centres)), out=starts[1:])
        return cls(centres, starts, np.argsort(owners, kind="stable").astype(np.int32))

    def owners(self) -> NDArray[np.int32]:
        """Return the number of each row's centre (documents,)."""
        owners = np.empty(len(self.rows), dtype=np.int32)
        owners[self.rows] = np.repeat(np.arange(len(self.centres), dtype=np.int32), np.diff(self.starts))
        return owners

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
                nearest = scan(query, self.centres, k=probes).rows
            chosen = nearest[lists_read:]
            more = int((self.starts[chosen + 1] - self.starts[chosen]).sum())
            lists_read, rows_read = lists_read + len(chosen), rows_read + more
            if rows_read > SCAN_FROM * len(codes):
                return scan(query, codes, k=k, allowed=allowed, radius=radius)
            lists = (read_only(self.rows), read_only(self.starts), chosen)
            parts.append(read_lists(words, code_words, mask, *lists, more, k, counts, state))
            if state[0] >= k or lists_read == len(self.centres):
                found = best(parts, k=k)
                near = found.distances <= largest
                return Found(found.rows[near], found.distances[near])
            probes *= 2

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that make up the clusters, by name."""
        return {"centres": self.centres, "starts": self.starts, "rows": self.rows}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Clusters:
        """Make clusters of what `arrays` returned; InputError where they do not fit together."""
        expected = {"centres": (np.uint8, 2), "starts": (np.int64, 1), "rows": (np.int32, 1)}
        for name, (kind, dimensions) in expected.items():
            if name not in arrays or arrays[name].dtype != kind or arrays[name].ndim != dimensions:
                raise InputError(f"clusters need {name} of {np.dtype(kind)} in {dimensions} dimensions")
        centres, starts, rows = (np.ascontiguousarray(arrays[name]) for name in expected)
        fits = len(starts) == len(centres) + 1 and starts[0] == 0 and starts[-1] == len(rows)
        # A row or a start out of place would make the kernel read memory that is not the codes'.
        ascends = not (np.diff(starts) < 0).any()
        if not (fits and ascends and (rows >= 0).all() and (rows < len(rows)).all()):
            raise InputError("the lists of the clusters do not fit their rows: build them again")
        return cls(centres, starts, rows)

    def _check(self, codes: Codes, probes: int) -> None:
        if probes < 1:
            raise InputError(f"probes must be at least 1, got {probes}")
        if codes.shape != (len(self.rows), self.centres.shape[1]):
            raise InputError(
                f"the clusters know {len(self.rows)} codes of {self.centres.shape[1] * 8} bits, "
                f"got {len(codes)} of {codes.shape[1] * 8}: build them again"
            )
