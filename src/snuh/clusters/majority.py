"""Centres for binary codes by k-majority: k-means in which a centre's bit is that of most of its codes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from snuh.compiling import compiled
from snuh.index import run_in_threads, split_rows
from snuh.scanning import GROUP, measure, widest_words

SAMPLE_PER_CENTRE = 64
ROUNDS = 6
PART_ROWS = 1 << 14

Codes = NDArray[np.uint8]


def find_centres(codes: Codes, *, count: int, rng: np.random.Generator) -> Codes:
    """Return at most `count` centres (centres, bytes) of contiguous codes, learnt on a sample of them."""
    size = min(len(codes), SAMPLE_PER_CENTRE * count)
    sample = codes[np.sort(rng.choice(len(codes), size=size, replace=False))]
    # Two centres on one code would be one too many, and many documents may share a code.
    distinct = np.unique(sample, axis=0)
    centres = distinct[rng.permutation(len(distinct))[:count]]
    for _ in range(ROUNDS):
        moved = _majorities(sample, nearest_centres(sample, centres), centres)
        if np.array_equal(moved, centres):
            break
        centres = moved
    return centres


def nearest_centres(codes: Codes, centres: Codes) -> NDArray[np.int32]:
    """Return the number of the nearest centre for each code; ties go to the lower number."""
    owners = np.empty(len(codes), dtype=np.int32)
    words, centre_words = widest_words(codes), widest_words(centres).reshape(-1)
    run_in_threads(
        lambda part: _assign(words[slice(*part)], centre_words, owners[slice(*part)]),
        split_rows(len(codes), most=PART_ROWS),
    )
    return owners


def _majorities(codes: Codes, owners: NDArray[np.int32], centres: Codes) -> Codes:
    """Return the centres moved to the majority of their codes, bit by bit; one without codes stays."""
    order = np.argsort(owners, kind="stable")
    own, starts, sizes = np.unique(owners[order], return_index=True, return_counts=True)
    bits = np.unpackbits(codes[order], axis=1)
    ones = np.add.reduceat(bits, starts, axis=0, dtype=np.int32)  # (centres with codes, bits)
    moved = centres.copy()
    moved[own] = np.packbits(2 * ones > sizes[:, None], axis=1)
    return moved


# numba has no type stubs, and the kernel's types are those of its arguments.
@compiled()
def _assign(codes, centres, owners):  # type: ignore[no-untyped-def]
    """Write the nearest of the centres (centres * words,) to each of the codes (rows, words)."""
    count = len(centres) // codes.shape[1]
    near = np.empty(GROUP, dtype=np.uint16)
    for row in range(len(codes)):
        best = np.uint16(65535)
        for first in range(0, count, GROUP):
            size = min(GROUP, count - first)
            measure(codes[row], centres, first, size, near)
            lowest = near[0]
            for j in range(1, size):
                lowest = min(lowest, near[j])
            if lowest < best:
                best = lowest
                j = 0
                while near[j] != lowest:
                    j += 1
                owners[row] = first + j
