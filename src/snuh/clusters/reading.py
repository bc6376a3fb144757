"""The kernel that reads lists of rows: it gathers the codes of a group of rows, then compares them."""

from __future__ import annotations

import numpy as np

from snuh.compiling import compiled
from snuh.scanning import GROUP, measure


# numba has no type stubs, and the kernels' types are those of their arguments.
@compiled()
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
            measure(query, group, 0, size, near)
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


@compiled()
def _pick(rows, allowed, picked):  # type: ignore[no-untyped-def]
    """Copy the rows that are allowed, and return how many they are."""
    size = 0
    for i in range(len(rows)):
        picked[size] = rows[i]
        size += allowed[rows[i]] if len(allowed) else 1
    return size


@compiled()
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
