"""Numba kernels of the searches: scans of codes, all of them or those in IVF lists, and scores of all rows.

A scan collects every code whose distance is below a limit. The limit starts at radius + 1 and, once k codes
are collected, is the distance of the k-th: a later code at the same distance has a higher row and loses the
tie. A histogram of the collected distances tells when the limit can be lowered.

`snuh.index.kernels_numpy` has the same functions without numba.
"""

from __future__ import annotations

import numpy as np
from numba.extending import intrinsic

from snuh._numba import Kernel, njit

GROUP = 256  # codes whose distances are computed together
BLOCK = 2048  # codes that stay in the L1 cache while every query is compared with them
FAR = np.uint16(65535)  # larger than any distance

# Indices into a query's state: the number of candidates stored, the number of codes collected so far at a
# distance of at most the limit, and the limit.
SIZE, WITHIN, LIMIT = 0, 1, 2


# Kernels are untyped: numba has no type stubs and infers their types from the arguments.
def _popcount(context, word):  # type: ignore[no-untyped-def]
    """Count the set bits of a word with LLVM's ctpop, which the compiler can vectorise."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.ctpop(arguments[0])

    return word(word), build


popcount: Kernel = intrinsic(_popcount)


@njit()
def scan_chunk(queries, codes, allowed, start, stop, k, rows, distances, histograms, states):  # type: ignore[no-untyped-def]
    """Scan the rows from `start` up to `stop` for every query, a block at a time.

    The shapes are queries (queries, words), codes (rows * words,), and allowed (rows,) or empty.
    """
    for first in range(start, stop, BLOCK):
        last = min(first + BLOCK, stop)
        for q in range(len(queries)):
            _scan_block(
                queries[q], codes, allowed, first, last, k, rows[q], distances[q], histograms[q], states[q]
            )


@njit()
def _scan_block(query, codes, allowed, start, stop, k, rows, distances, histogram, state):  # type: ignore[no-untyped-def]
    """Collect the codes below the limit, and lower the limit as they accumulate."""
    count = state[SIZE]
    within = state[WITHIN]
    limit = state[LIMIT]
    near = np.empty(GROUP, dtype=np.uint16)
    is_word = len(query) == 1 and query.itemsize == 8
    was_near = False
    for first in range(start, stop, GROUP):
        size = min(GROUP, stop - first)
        if len(allowed) and not _has_any(allowed[first : first + size]):
            continue
        if is_word and not was_near and not _has_near(query[0], codes[first : first + size], limit):
            continue
        hamming_distances(query, codes, first, size, near)
        lowest = near[0]
        for j in range(1, size):
            lowest = min(lowest, near[j])
        was_near = lowest < limit  # the next group is then likely to have near codes, too
        if not was_near:
            continue
        if len(allowed):
            _mask_out(near, allowed[first : first + size])
        for j in range(size):
            if near[j] >= limit:
                continue
            if count == len(rows):
                count = _drop_far(rows, distances, count, limit, k - within + histogram[limit])
            rows[count] = first + j
            distances[count] = near[j]
            histogram[near[j]] += 1
            count += 1
            within += 1
            while within - histogram[limit] >= k:
                within -= histogram[limit]
                limit -= 1
    state[SIZE] = count
    state[WITHIN] = within
    state[LIMIT] = limit


@njit()
def _has_near(query, group, limit):  # type: ignore[no-untyped-def]
    """Return whether any of the 64-bit codes is below the limit.

    The bitwise or of all differences `distance - limit` is negative if one of them is. This takes fewer
    instructions than storing the distances and finding their minimum.
    """
    combined = np.int64(0)
    for j in range(len(group)):
        combined |= np.int64(popcount(query ^ group[j])) - limit
    return combined < 0


@njit()
def hamming_distances(query, codes, first, size, near):  # type: ignore[no-untyped-def]
    """Write the distances of `size` codes from row `first` on to `near`; loops of short codes vectorise."""
    words = len(query)
    group = codes[first * words : (first + size) * words]
    if words == 1:
        only = query[0]
        for j in range(size):
            near[j] = popcount(only ^ group[j])
    elif words == 2:
        left, right = query[0], query[1]
        for j in range(size):
            near[j] = popcount(left ^ group[2 * j]) + popcount(right ^ group[2 * j + 1])
    else:
        for j in range(size):
            distance = np.uint16(0)
            for w in range(words):
                distance += np.uint16(popcount(query[w] ^ group[j * words + w]))
            near[j] = distance


@njit()
def _has_any(allowed):  # type: ignore[no-untyped-def]
    """Return whether any row is allowed; without an early exit the loop vectorises."""
    result = False
    for j in range(len(allowed)):
        result |= allowed[j]
    return result


@njit()
def _mask_out(near, allowed):  # type: ignore[no-untyped-def]
    """Set the distances of excluded rows to FAR, without a branch that could be mispredicted."""
    for j in range(len(allowed)):
        near[j] = near[j] if allowed[j] else FAR


@njit()
def _drop_far(rows, distances, count, limit, spare):  # type: ignore[no-untyped-def]
    """Keep the candidates below the limit and the first `spare` at it, in order; return the new count."""
    left = 0
    for i in range(count):
        if distances[i] > limit:
            continue
        if distances[i] == limit:
            if spare == 0:
                continue
            spare -= 1
        rows[left] = rows[i]
        distances[left] = distances[i]
        left += 1
    return left


@njit()
def scan_lists(query, codes, allowed, rows, offsets, lists, capacity, k, histogram, state):  # type: ignore[no-untyped-def]
    """Return the rows in some IVF lists that may be among the k nearest, and their distances.

    `state` holds the number of rows collected at a distance of at most the limit, and the limit: the number
    of bits at first, then the distance of the k-th. The lists are not in row order, so every row at the limit
    is returned.
    """
    candidates = np.empty(capacity, dtype=np.int64)
    distances = np.empty(capacity, dtype=np.uint16)
    count = 0
    within = state[0]
    limit = state[1]
    picked = np.empty(GROUP, dtype=np.int64)
    group = np.empty(GROUP * len(query), dtype=codes.dtype)
    near = np.empty(GROUP, dtype=np.uint16)
    for i in lists:
        for first in range(offsets[i], offsets[i + 1], GROUP):
            size = _pick(rows[first : min(first + GROUP, offsets[i + 1])], allowed, picked)
            _gather(codes, picked, size, len(query), group)
            hamming_distances(query, group, 0, size, near)
            for j in range(size):
                if near[j] > limit:
                    continue
                candidates[count] = picked[j]
                distances[count] = near[j]
                histogram[near[j]] += 1
                count += 1
                within += 1
                while within - histogram[limit] >= k:
                    within -= histogram[limit]
                    limit -= 1
    state[0] = within
    state[1] = limit
    return candidates[:count], distances[:count]


@njit()
def _pick(rows, allowed, picked):  # type: ignore[no-untyped-def]
    """Copy the allowed rows to `picked` and return their number."""
    size = 0
    for i in range(len(rows)):
        picked[size] = rows[i]
        size += allowed[rows[i]] if len(allowed) else 1
    return size


@njit()
def _gather(codes, picked, size, words, group):  # type: ignore[no-untyped-def]
    """Copy the codes of the picked rows; the loop does nothing else, so that memory accesses overlap."""
    if words == 1:
        for j in range(size):
            group[j] = codes[np.uint64(picked[j])]  # an unsigned index needs no wraparound check
        return
    for j in range(size):
        start = picked[j] * words
        for w in range(words):
            group[j * words + w] = codes[start + w]


@njit()
def assign(codes, centroids, assignments):  # type: ignore[no-untyped-def]
    """Write the index of the nearest of the centroids (centroids * words,) for each code (rows, words)."""
    count = len(centroids) // codes.shape[1]
    near = np.empty(GROUP, dtype=np.uint16)
    for row in range(len(codes)):
        best = FAR
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


@njit(
    "int64(int64[::1], float32[::1], Array(int64, 1, 'C', readonly=True),"
    " Array(int32, 1, 'C', readonly=True), Array(uint8, 1, 'C', readonly=True),"
    " Array(int32, 1, 'C', readonly=True), float32, float32, float32[::1], int32[::1], float32[::1])"
)
def add_scores(terms, weights, indptr, rows, counts, lengths, constant, slope, zeros, found, scores):  # type: ignore[no-untyped-def]
    """Write the rows that have a term, and their BM25 scores; return their number.

    `zeros` has a zero for every row, and has it again at the end.
    """
    size = 0
    for t in range(len(terms)):
        weight = weights[t]
        for k in range(indptr[terms[t]], indptr[terms[t] + 1]):
            row = np.uint32(rows[k])  # an unsigned index needs no wraparound check
            tf = np.float32(counts[k])
            before = zeros[row]
            if before == np.float32(0.0):
                found[size] = rows[k]
                size += 1
            zeros[row] = before + weight * tf / (tf + constant + slope * np.float32(lengths[row]))
    for i in range(size):
        row = np.uint32(found[i])
        scores[i] = zeros[row]
        zeros[row] = np.float32(0.0)
    return size


@njit()
def _rise(found, sums, rows, place, index, total):  # type: ignore[no-untyped-def]
    """Put an entry at the end of a heap."""
    while place > 0:
        parent = (place - 1) // 2
        if sums[parent] < total or (sums[parent] == total and rows[found[parent]] >= rows[index]):
            break
        found[place], sums[place] = found[parent], sums[parent]
        place = parent
    found[place], sums[place] = index, total


@njit()
def _sink(found, sums, rows, index, total):  # type: ignore[no-untyped-def]
    """Replace the worst entry of a heap."""
    place = 0
    while 2 * place + 1 < len(found):
        child = 2 * place + 1
        other = child + 1
        if other < len(found) and (
            sums[other] < sums[child]
            or (sums[other] == sums[child] and rows[found[other]] > rows[found[child]])
        ):
            child = other
        if total < sums[child] or (total == sums[child] and rows[index] >= rows[found[child]]):
            break
        found[place], sums[place] = found[child], sums[child]
        place = child
    found[place], sums[place] = index, total


@njit(
    "int64(int32[::1], float32[::1], Array(uint8, 2, 'C', readonly=True), float32[:, ::1],"
    " Array(boolean, 1, 'C', readonly=True), Array(boolean, 1, 'C', readonly=True), float32, float32,"
    " float32, float32, float32, float32, int64[::1], float32[::1])"
)
def collect(  # type: ignore[no-untyped-def]
    rows, words, codes, table, has_code, allowed, word_mean, word_inverse, code_mean, code_inverse, highest,
    floor, found, sums,
):  # fmt: skip
    """Write the indices of the rows with the highest sums, in any order, and the sums; return their number.

    Both are a heap, whose first is the worst. No standardized score of a code is above `highest`.
    """
    k = len(found)
    size = 0
    if k == 0:
        return 0
    for i in range(len(rows)):
        row = np.uint32(rows[i])
        if len(allowed) and not allowed[row]:
            continue
        total = (words[i] - word_mean) * word_inverse
        lowest = sums[0] if size == k else floor
        if total + highest < lowest:
            continue
        if len(codes) and (not len(has_code) or has_code[row]):
            score = np.float32(0.0)
            for byte in range(codes.shape[1]):
                score += table[byte, codes[row, byte]]
            total += (score - code_mean) * code_inverse
        elif words[i] == np.float32(0.0):
            continue
        if total < floor:
            continue
        if size < k:
            _rise(found, sums, rows, size, i, total)
            size += 1
        elif total > sums[0] or (total == sums[0] and rows[i] < rows[found[0]]):
            _sink(found, sums, rows, i, total)
    return size
