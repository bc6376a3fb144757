"""The kernels of the exact search: one reading of the codes, keeping the best k of each query on the way.

The limit is the distance a code must stay below to be kept: at first one more than the largest wanted, and
once k codes are at hand that of the k-th, as a later code at the same distance has a higher row and loses.
Counting how many codes were kept at each distance tells when it can be lowered.
"""

from __future__ import annotations

import numpy as np
from numba.extending import intrinsic

from snuh._numba import Kernel, njit

GROUP = 256  # codes whose distances are compared at once
BLOCK = 2048  # codes that stay in the nearest cache while every query reads them
FAR = np.uint16(65535)  # beyond every distance

# Indices into a query's state: the number of codes kept, how many of all that were kept have a distance of at
# most the limit, and the limit.
KEPT, WITHIN, LIMIT = 0, 1, 2


# numba has no type stubs, and the kernels' types are those of their arguments.
def _count_ones(context, word):  # type: ignore[no-untyped-def]
    """Let the compiler count the ones of a word: one instruction, or a few for many words."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.ctpop(arguments[0])

    return word(word), build


popcount: Kernel = intrinsic(_count_ones)


@njit()
def scan_part(queries, codes, allowed, start, stop, k, rows, distances, counts, states):  # type: ignore[no-untyped-def]
    """Read the rows from `start` to before `stop` for every query, a block at a time.

    The shapes are queries (queries, words), codes (rows * words,), and allowed (rows,) or empty.
    """
    for first in range(start, stop, BLOCK):
        last = min(first + BLOCK, stop)
        for q in range(len(queries)):
            _keep_near(
                queries[q], codes, allowed, first, last, k, rows[q], distances[q], counts[q], states[q]
            )


@njit()
def _keep_near(query, codes, allowed, start, stop, k, rows, distances, counts, state):  # type: ignore[no-untyped-def]
    """Add the codes below the limit to what is kept, and lower the limit as they come."""
    kept = state[KEPT]
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
        was_near = lowest < limit  # where some are near the next ones may be, too
        if not was_near:
            continue
        if len(allowed):
            _hide(near, allowed[first : first + size])
        for j in range(size):
            if near[j] >= limit:
                continue
            if kept == len(rows):
                kept = _drop_far(rows, distances, kept, limit, k - within + counts[limit])
            rows[kept] = first + j
            distances[kept] = near[j]
            counts[near[j]] += 1
            kept += 1
            within += 1
            while within - counts[limit] >= k:
                within -= counts[limit]
                limit -= 1
    state[KEPT] = kept
    state[WITHIN] = within
    state[LIMIT] = limit


@njit()
def _has_near(query, group, limit):  # type: ignore[no-untyped-def]
    """Tell whether one of some codes of 64 bits is below the limit.

    A distance less the limit is negative then, and so is what all of these have in common with `or`: that
    takes fewer instructions than to write the distances and find the lowest.
    """
    signs = np.int64(0)
    for j in range(len(group)):
        signs |= np.int64(popcount(query ^ group[j])) - limit
    return signs < 0


@njit()
def hamming_distances(query, codes, first, size, near):  # type: ignore[no-untyped-def]
    """Write the distances of `size` codes from row `first` on; the short codes take vector instructions."""
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
    """Tell whether one of them is allowed; looking at all takes fewer instructions than stopping early."""
    one = False
    for j in range(len(allowed)):
        one |= allowed[j]
    return one


@njit()
def _hide(near, allowed):  # type: ignore[no-untyped-def]
    """Put what is not allowed beyond every distance, without a branch that could be guessed wrong."""
    for j in range(len(allowed)):
        near[j] = near[j] if allowed[j] else FAR


@njit()
def _drop_far(rows, distances, kept, limit, spare):  # type: ignore[no-untyped-def]
    """Keep those below the limit and the first `spare` at it, in their order; return how many these are."""
    left = 0
    for i in range(kept):
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


# The kernel that reads lists of rows: it gathers the codes of a group of rows, then compares them.


# numba has no type stubs, and the kernels' types are those of their arguments.
@njit()
def read_lists(query, codes, allowed, rows, starts, chosen, room, k, counts, state):  # type: ignore[no-untyped-def]
    """Return the rows of the chosen lists that may be among the k nearest, and their distances.

    The state is how many were found at a distance of at most the limit, and the limit: at first the bits,
    then the distance of the k-th. As the lists bring the rows in no order, all at the limit are returned.
    """
    found = np.empty(room, dtype=np.int64)
    distances = np.empty(room, dtype=np.uint16)
    kept = 0
    within = state[0]
    limit = state[1]
    picked = np.empty(GROUP, dtype=np.int64)
    group = np.empty(GROUP * len(query), dtype=codes.dtype)
    near = np.empty(GROUP, dtype=np.uint16)
    for number in chosen:
        for first in range(starts[number], starts[number + 1], GROUP):
            size = _pick(rows[first : min(first + GROUP, starts[number + 1])], allowed, picked)
            _gather(codes, picked, size, len(query), group)
            hamming_distances(query, group, 0, size, near)
            for j in range(size):
                if near[j] > limit:
                    continue
                found[kept] = picked[j]
                distances[kept] = near[j]
                counts[near[j]] += 1
                kept += 1
                within += 1
                while within - counts[limit] >= k:
                    within -= counts[limit]
                    limit -= 1
    state[0] = within
    state[1] = limit
    return found[:kept], distances[:kept]


@njit()
def _pick(rows, allowed, picked):  # type: ignore[no-untyped-def]
    """Copy the rows that are allowed, and return how many they are."""
    size = 0
    for i in range(len(rows)):
        picked[size] = rows[i]
        size += allowed[rows[i]] if len(allowed) else 1
    return size


@njit()
def _gather(codes, picked, size, words, group):  # type: ignore[no-untyped-def]
    """Copy the codes of the picked rows: nothing else in the loop, so that many are on their way at once."""
    if words == 1:
        for j in range(size):
            group[j] = codes[np.uint64(picked[j])]  # unsigned: a signed index is checked for its sign
        return
    for j in range(size):
        start = picked[j] * words
        for w in range(words):
            group[j * words + w] = codes[start + w]
