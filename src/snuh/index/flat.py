"""Exact search for the codes nearest to a query, in Hamming distance.

The codes are read once, in groups. A group's distances are compared with the distance still worth having,
which counting keeps: once k codes are at hand it is that of the k-th, and only shrinks. So there is neither a
heap nor a sort of many, and most groups are left after one comparison. The answer is ordered by (distance,
row), whatever the number of threads and parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from snuh._numba import usable_processors
from snuh.codes import check_codes
from snuh.errors import InputError
from snuh.index.hamming_kernels import KEPT, LIMIT, scan_part

PART_ROWS = 1 << 18  # rows a thread takes at a time: some tenths of a millisecond
BLOCK_QUERIES = 32  # queries that share one reading of the codes

Codes = NDArray[np.uint8]
Mask = NDArray[np.bool_]
Words: TypeAlias = NDArray[np.unsignedinteger[Any]]
Array = TypeVar("Array", bound=NDArray[Any])
Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Found:
    """The rows found for one query and their distances, ordered by (distance, row)."""

    rows: NDArray[np.int64]
    distances: NDArray[np.uint16]


@dataclass(frozen=True, slots=True)
class Neighbors:
    """The rows of the nearest codes and their distances, each (queries, k), nearest first, ties by row."""

    rows: NDArray[np.int64]
    distances: NDArray[np.uint16]


class TopK:
    """The k nearest codes of each of some queries in the rows read so far, and a few others beside them."""

    def __init__(self, queries: int, *, k: int, rows: int, radius: int) -> None:
        self.k = min(k, rows)
        room = min(2 * k, rows)
        self.rows = np.empty((queries, room), dtype=np.int64)  # each line ascending
        self.distances = np.empty((queries, room), dtype=np.uint16)
        self.counts = np.zeros((queries, radius + 2), dtype=np.int64)  # kept at each distance
        self.states = np.zeros((queries, 3), dtype=np.int64)
        self.states[:, LIMIT] = radius + 1

    def read(self, queries: Words, codes: Words, allowed: NDArray[np.bool_], part: tuple[int, int]) -> None:
        """Read a part of the codes, its first row and the one after its last; parts come in order."""
        state = (self.rows, self.distances, self.counts, self.states)
        scan_part(queries, codes.reshape(-1), allowed, *part, self.k, *state)

    def of_query(self, query: int) -> tuple[NDArray[np.int64], NDArray[np.uint16]]:
        """Return the rows kept for a query, in ascending order, and their distances."""
        kept = self.states[query, KEPT]
        return self.rows[query, :kept], self.distances[query, :kept]


def widest_words(codes: NDArray[np.uint8]) -> Words:
    """View contiguous codes (documents, bytes) as the widest integers that divide a row, read-only."""
    size = next(size for size in (8, 4, 2, 1) if codes.shape[1] % size == 0)
    return read_only(codes.view(f"u{size}"))


def read_only(array: Array) -> Array:
    """Return a view that cannot be written, so that a kernel meets one type of array and is compiled once."""
    view = array.view()
    view.flags.writeable = False
    return view


def scan(
    query: Codes, codes: Codes, *, k: int, allowed: Mask | None = None, radius: int | None = None
) -> Found:
    """Find the k codes nearest to one query (bytes,), by reading them all; fewer where there are no more.

    Args:
        query: one packed code.
        codes: (documents, bytes); read-only and memory-mapped arrays are used as they are.
        k: most rows to return, at least 1.
        allowed: (documents,), which rows may be found; all by default.
        radius: the largest distance that may be found; any by default.
    """
    return scan_many(check_query(query)[None], codes, k=k, allowed=allowed, radius=radius)[0]


def scan_many(
    queries: Codes, codes: Codes, *, k: int, allowed: Mask | None = None, radius: int | None = None
) -> list[Found]:
    """Find the k codes nearest to each query (queries, bytes), reading the codes once for many of them."""
    queries, codes = check_codes(queries), check_codes(codes)
    radius = check_search(queries, codes, k=k, radius=radius)
    mask = check_allowed(allowed, len(codes))
    words, code_words = widest_words(queries), widest_words(codes)
    blocks = [words[first : first + BLOCK_QUERIES] for first in range(0, len(words), BLOCK_QUERIES)]
    parts = split_rows(len(codes), limit=PART_ROWS)

    def read(block: Words, waiting: Iterator[tuple[int, int]]) -> TopK:
        kept = TopK(len(block), k=k, rows=len(codes), radius=radius)
        for part in waiting:
            kept.read(block, code_words, mask, part)
        return kept

    def search(block: Words, *, threads: int) -> list[Found]:
        waiting = iter(parts)  # shared: whoever is free takes the next part
        kept = run_in_threads(lambda _: read(block, waiting), range(threads))
        return [best([one.of_query(query) for one in kept], k=k) for query in range(len(block))]

    processors = usable_processors()
    if len(blocks) >= processors:
        answers = run_in_threads(lambda block: search(block, threads=1), blocks)
    else:
        answers = [search(block, threads=min(len(parts), processors)) for block in blocks]
    return [found for of_block in answers for found in of_block]


def nearest(query_codes: Codes, codes: Codes, *, k: int) -> Neighbors:
    """Find the k nearest codes of each query, ordered by (distance, row); all where there are fewer."""
    found = scan_many(query_codes, codes, k=k)
    shape = (len(found), min(k, len(codes)))
    rows = np.array([one.rows for one in found], dtype=np.int64).reshape(shape)
    return Neighbors(rows, np.array([one.distances for one in found], dtype=np.uint16).reshape(shape))


def best(parts: Sequence[tuple[NDArray[np.int64], NDArray[np.uint16]]], *, k: int) -> Found:
    """Return the k best of the rows and distances found in several parts, ordered by (distance, row)."""
    rows = np.concatenate([part[0] for part in parts])
    distances = np.concatenate([part[1] for part in parts])
    order = np.lexsort((rows, distances))[:k]
    return Found(rows[order], distances[order])


def run_in_threads(work: Callable[[Task], Result], tasks: Sequence[Task]) -> list[Result]:
    """Return the result of each task in order, made by at most as many threads as processors."""
    threads = min(len(tasks), usable_processors())
    if threads < 2:
        return [work(task) for task in tasks]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, tasks))


def split_rows(rows: int, *, limit: int) -> list[tuple[int, int]]:
    """Return parts of at most `most` rows, each as its first row and the one after its last."""
    return [(start, min(start + limit, rows)) for start in range(0, rows, limit)] or [(0, 0)]


def check_query(query: Codes) -> Codes:
    """Return one packed code (bytes,); InputError if it is none."""
    array = np.asarray(query)
    if array.ndim != 1:
        raise InputError(
            f"a query must be one code of shape (bits / 8,), got shape {array.shape}: "
            "search for several with scan_many"
        )
    code: Codes = check_codes(array[None])[0]
    return code


def check_search(queries: Codes, codes: Codes, *, k: int, radius: int | None) -> int:
    """Return the largest distance to find; InputError where the search makes no sense."""
    if k < 1:
        raise InputError(f"k must be at least 1, got {k}")
    bits = int(codes.shape[1]) * 8
    if queries.shape[1] * 8 != bits:
        raise InputError(
            f"the queries have {queries.shape[1] * 8} bits and the codes {bits}: "
            "encode both with the same model"
        )
    if radius is not None and radius < 0:
        raise InputError(f"radius must be at least 0, got {radius}")
    return bits if radius is None else min(radius, bits)


def check_allowed(allowed: Mask | None, documents: int) -> Mask:
    """Return the mask, empty where every row is allowed; InputError if it does not fit the codes."""
    if allowed is None:
        mask = np.zeros(0, dtype=np.bool_)
    else:
        mask = np.ascontiguousarray(allowed)
        if mask.dtype != np.bool_ or mask.shape != (documents,):
            raise InputError(
                f"allowed must be a bool for each of the {documents} codes, "
                f"got {mask.dtype} of shape {mask.shape}"
            )
    return read_only(mask)
