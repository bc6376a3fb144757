"""The kernels of the searches on NumPy alone, with the arguments and results of `snuh.index.kernels`."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from snuh._numba import Kernels

KERNELS = Kernels(compiled="snuh.index.kernels", plain=__name__)
SIZE, LIMIT = 0, 2  # indices into the state of a query, as in `snuh.index.kernels`
BLOCK_ROWS = 1024  # codes that are compared with all centroids at once

Words: TypeAlias = NDArray[np.unsignedinteger[Any]]
Mask: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float32]
Integers: TypeAlias = NDArray[np.int64]


def scan_chunk(
    queries: Words,
    codes: Words,
    allowed: Mask,
    start: int,
    stop: int,
    k: int,
    rows: Integers,
    distances: NDArray[np.uint16],
    histograms: Integers,
    states: Integers,
) -> None:
    """Scan the rows from `start` up to `stop` for every query; the histograms are not needed."""
    chunk = codes.reshape(-1, queries.shape[1])[start:stop]
    for q, query in enumerate(queries):
        near = _distances(query, chunk)
        is_near = near < states[q, LIMIT]
        found = np.flatnonzero(is_near & allowed[start:stop] if len(allowed) else is_near)
        size = states[q, SIZE]
        merged_rows = np.concatenate([rows[q, :size], found + start])
        merged = np.concatenate([distances[q, :size], near[found]])
        if len(merged) >= k > 0:
            keep = np.sort(_lowest(merged, k))  # in ascending order of the rows
            merged_rows, merged = merged_rows[keep], merged[keep]
            states[q, LIMIT] = merged.max()
        states[q, SIZE] = size = len(merged)
        rows[q, :size], distances[q, :size] = merged_rows, merged


def scan_lists(
    query: Words,
    codes: Words,
    allowed: Mask,
    rows: NDArray[np.int32],
    offsets: Integers,
    lists: Integers,
    capacity: int,
    k: int,
    histogram: Integers,
    state: Integers,
) -> tuple[Integers, NDArray[np.uint16]]:
    """Return the rows in some IVF lists that may be among the k nearest, and their distances."""
    parts = [rows[offsets[i] : offsets[i + 1]] for i in lists]
    candidates = np.concatenate([np.zeros(0, dtype=np.int64), *parts])
    if len(allowed):
        candidates = candidates[allowed[candidates]]
    distances = _distances(query, codes.reshape(-1, len(query))[candidates])
    is_near = distances <= state[1]
    candidates, distances = candidates[is_near], distances[is_near]
    histogram += np.bincount(distances, minlength=len(histogram))
    within = np.cumsum(histogram[: state[1] + 1])
    state[1] = min(int(np.searchsorted(within, k)), state[1])
    state[0] = within[state[1]]
    return candidates, distances


def assign(codes: Words, centroids: Words, assignments: NDArray[np.int32]) -> None:
    """Write the index of the nearest of the centroids (centroids * words,) for each code (rows, words)."""
    columns = centroids.reshape(-1, codes.shape[1]).T
    for start in range(0, len(codes), BLOCK_ROWS):
        block = codes[start : start + BLOCK_ROWS]
        distances = np.zeros((len(block), columns.shape[1]), dtype=np.uint16)
        for word, column in zip(block.T, columns, strict=True):
            distances += np.bitwise_count(word[:, None] ^ column)
        assignments[start : start + BLOCK_ROWS] = distances.argmin(axis=1)


def _distances(query: Words, codes: Words) -> NDArray[np.uint16]:
    """Return the distances of the codes (rows, words) to a query (words,)."""
    distances = np.zeros(len(codes), dtype=np.uint16)
    for word, column in zip(query, codes.T, strict=True):
        distances += np.bitwise_count(column ^ word)
    return distances


def add_scores(
    terms: Integers,
    weights: Floats,
    indptr: Integers,
    rows: NDArray[np.int32],
    counts: NDArray[np.uint8],
    lengths: NDArray[np.int32],
    constant: np.float32,
    slope: np.float32,
    zeros: Floats,
    found: NDArray[np.int32],
    scores: Floats,
) -> int:
    """Write the rows that have a term, and their BM25 scores; return their number."""
    postings = [slice(indptr[term], indptr[term + 1]) for term in terms.tolist()]
    for posting, weight in zip(postings, weights, strict=True):
        tf = counts[posting].astype(np.float32)
        length = lengths[rows[posting]].astype(np.float32)
        zeros[rows[posting]] += weight * tf / (tf + constant + slope * length)
    if len(postings) == 1:
        distinct = rows[postings[0]]
    else:
        listed = np.concatenate([rows[:0], *(rows[posting] for posting in postings)])
        order = np.argsort(listed, kind="stable")
        is_first = np.ones(len(listed), dtype=np.bool_)
        is_first[1:] = listed[order[1:]] != listed[order[:-1]]
        distinct = listed[np.sort(order[is_first])]  # in order of appearance, as the compiled kernel has them
    found[: len(distinct)], scores[: len(distinct)] = distinct, zeros[distinct]
    zeros[distinct] = 0.0
    return len(distinct)


def collect(
    rows: NDArray[np.int32],
    words: Floats,
    codes: NDArray[np.uint8],
    table: Floats,
    has_code: Mask,
    allowed: Mask,
    word_mean: np.float32,
    word_inverse: np.float32,
    code_mean: np.float32,
    code_inverse: np.float32,
    highest: np.float32,
    floor: np.float32,
    found: Integers,
    sums: Floats,
) -> int:
    """Write the indices of the rows with the highest sums, and the sums; return their number."""
    del highest
    totals = (words - word_mean) * word_inverse
    is_candidate = words > 0
    if len(codes):
        scores = np.zeros(len(rows), dtype=np.float32)
        chosen = codes[rows]
        for column, values in zip(chosen.T, table, strict=True):
            scores += values[column]
        coded = has_code[rows] if len(has_code) else np.ones(len(rows), dtype=np.bool_)
        totals += np.where(coded, (scores - code_mean) * code_inverse, np.float32(0.0))
        is_candidate |= coded
    if len(allowed):
        is_candidate &= allowed[rows]
    indices = np.flatnonzero(is_candidate & (totals >= floor))
    indices = indices[np.lexsort((rows[indices], -totals[indices]))][: len(found)]
    found[: len(indices)], sums[: len(indices)] = indices, totals[indices]
    return len(indices)


def _lowest(values: NDArray[Any], k: int) -> Integers:
    """Return the indices of the k lowest values, of equal ones the first."""
    if k == 0:
        return np.zeros(0, dtype=np.int64)
    highest = np.partition(values, k - 1)[k - 1]
    below, equal = np.flatnonzero(values < highest), np.flatnonzero(values == highest)
    return np.concatenate([below, equal[: k - len(below)]])
