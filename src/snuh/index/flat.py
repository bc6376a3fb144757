"""Exact search for the codes nearest to a query, in Hamming distance.

The codes are read once, in groups. A histogram of the distances seen so far gives the distance of the k-th
nearest code, and a group without a smaller distance is skipped after one comparison: there is no heap, and
only about k candidates are sorted. Results are ordered by (distance, row) for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from snuh._numba import usable_processors
from snuh.codes import as_words, check_codes
from snuh.errors import InputError
from snuh.index.kernels_numpy import KERNELS, LIMIT, SIZE

PLAIN_SECONDS = 1e-9  # that NumPy takes to compare a byte
CHUNK_ROWS = 1 << 18  # rows that a thread scans at a time: a few tenths of a millisecond
BLOCK_QUERIES = 32  # queries that share one pass over the codes

Codes = NDArray[np.uint8]
Mask = NDArray[np.bool_]
Words: TypeAlias = NDArray[np.unsignedinteger[Any]]
Array = TypeVar("Array", bound=NDArray[Any])
Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The rows nearest to one query and their distances, ordered by (distance, row)."""

    rows: NDArray[np.int64]
    distances: NDArray[np.uint16]


@dataclass(frozen=True, slots=True)
class Neighbors:
    """The rows nearest to each query and their distances, both (queries, k), ordered by (distance, row)."""

    rows: NDArray[np.int64]
    distances: NDArray[np.uint16]


class TopK:
    """Candidates for the k nearest codes of each query among the rows scanned so far."""

    def __init__(self, kernels: Any, queries: int, *, k: int, rows: int, radius: int) -> None:
        self._kernels = kernels  # of `KERNELS`
        self.k = min(k, rows)
        capacity = min(2 * k, rows)
        self.rows = np.empty((queries, capacity), dtype=np.int64)  # ascending for each query
        self.distances = np.empty((queries, capacity), dtype=np.uint16)
        self.histogram = np.zeros((queries, radius + 2), dtype=np.int64)  # candidates at each distance
        self.states = np.zeros((queries, 3), dtype=np.int64)
        self.states[:, LIMIT] = radius + 1

    def scan(self, queries: Words, codes: Words, allowed: Mask, chunk: tuple[int, int]) -> None:
        """Scan the rows from chunk[0] up to chunk[1]; chunks must come in ascending order."""
        buffers = (self.rows, self.distances, self.histogram, self.states)
        self._kernels.scan_chunk(queries, codes.reshape(-1), allowed, *chunk, self.k, *buffers)

    def candidates(self, query: int) -> SearchResult:
        """Return the candidates of a query, in ascending order of their rows."""
        size = self.states[query, SIZE]
        return SearchResult(self.rows[query, :size], self.distances[query, :size])


def widest_words(codes: NDArray[np.uint8]) -> Words:
    """View contiguous codes (documents, bytes) as the widest integers that divide a row, read-only."""
    return read_only(as_words(codes))


def read_only(array: Array) -> Array:
    """Return a read-only view, so that a kernel sees one array type and is compiled once."""
    view = array.view()
    view.flags.writeable = False
    return view


def scan(
    query: Codes, codes: Codes, *, k: int, allowed: Mask | None = None, radius: int | None = None
) -> SearchResult:
    """Find the k codes nearest to one query by scanning all codes; fewer if fewer qualify.

    Args:
        query: one packed code (bytes,).
        codes: (documents, bytes); read-only and memory-mapped arrays are not copied.
        k: maximum number of rows to return, at least 1.
        allowed: (documents,), mask of the rows to consider; all by default.
        radius: maximum distance of a result; unlimited by default.
    """
    return scan_many(check_query(query)[None], codes, k=k, allowed=allowed, radius=radius)[0]


def scan_many(
    queries: Codes, codes: Codes, *, k: int, allowed: Mask | None = None, radius: int | None = None
) -> list[SearchResult]:
    """Find the k codes nearest to each query (queries, bytes), in one pass over the codes per 32 queries."""
    queries, codes = check_codes(queries), check_codes(codes)
    radius = check_search(queries, codes, k=k, radius=radius)
    mask = check_allowed(allowed, len(codes))
    words, code_words = widest_words(queries), widest_words(codes)
    blocks = [words[first : first + BLOCK_QUERIES] for first in range(0, len(words), BLOCK_QUERIES)]
    chunks = split_rows(len(codes), limit=CHUNK_ROWS)
    kernels = KERNELS(PLAIN_SECONDS * len(queries) * codes.size)

    def scan_chunks(block: Words, pending: Iterator[tuple[int, int]]) -> TopK:
        top = TopK(kernels, len(block), k=k, rows=len(codes), radius=radius)
        for chunk in pending:
            top.scan(block, code_words, mask, chunk)
        return top

    def search(block: Words, *, threads: int) -> list[SearchResult]:
        pending = iter(chunks)  # shared by the threads: each takes the next chunk when it is free
        tops = run_in_threads(lambda _: scan_chunks(block, pending), range(threads))
        return [merge([top.candidates(query) for top in tops], k=k) for query in range(len(block))]

    processors = usable_processors()
    if len(blocks) >= processors:
        results = run_in_threads(lambda block: search(block, threads=1), blocks)
    else:
        results = [search(block, threads=min(len(chunks), processors)) for block in blocks]
    return [result for of_block in results for result in of_block]


def nearest(query_codes: Codes, codes: Codes, *, k: int) -> Neighbors:
    """Find the k nearest codes of each query as arrays (queries, min(k, documents))."""
    results = scan_many(query_codes, codes, k=k)
    shape = (len(results), min(k, len(codes)))
    rows = np.array([result.rows for result in results], dtype=np.int64).reshape(shape)
    distances = np.array([result.distances for result in results], dtype=np.uint16).reshape(shape)
    return Neighbors(rows, distances)


def merge(parts: Sequence[SearchResult], *, k: int) -> SearchResult:
    """Return the k best of several partial results, ordered by (distance, row)."""
    rows = np.concatenate([part.rows for part in parts])
    distances = np.concatenate([part.distances for part in parts])
    order = np.lexsort((rows, distances))[:k]
    return SearchResult(rows[order], distances[order])


def run_in_threads(work: Callable[[Task], Result], tasks: Sequence[Task]) -> list[Result]:
    """Return the results of all tasks in order, using at most one thread per processor."""
    threads = min(len(tasks), usable_processors())
    if threads < 2:
        return [work(task) for task in tasks]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, tasks))


def split_rows(rows: int, *, limit: int) -> list[tuple[int, int]]:
    """Split a range of rows into (start, stop) chunks of at most `limit` rows."""
    return [(start, min(start + limit, rows)) for start in range(0, rows, limit)] or [(0, 0)]


def check_query(query: Codes) -> Codes:
    """Return one packed code (bytes,); raise InputError for anything else."""
    array = np.asarray(query)
    if array.ndim != 1:
        raise InputError(
            f"a query must be one code of shape (bits / 8,), got shape {array.shape}: "
            "use scan_many for several queries"
        )
    code: Codes = check_codes(array[None])[0]
    return code


def check_search(queries: Codes, codes: Codes, *, k: int, radius: int | None) -> int:
    """Validate the parameters of a search and return its radius; raise InputError if they are invalid."""
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
    """Return the mask, empty if every row is allowed; raise InputError if it does not match the codes."""
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
