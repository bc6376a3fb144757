"""Outlines: which words a document has, in 128 bits, to turn pairs away before their rows are read.

A word's bit is its column modulo 128, so a bit that is not set says that the document has none of its words.
The cosine of two rows of unit length is at most the length of the first, taken over the words that the second
has. So all of the first that lies in bits the second has not is lost, and that is a sum of 32 table entries.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from snuh.compiling import compiled

BITS, NIBBLES = 128, 32


def outline_rows(rows: sparse.csr_matrix) -> NDArray[np.uint64]:
    """Return the outlines (docs, 2 words of 64 bits)."""
    outlines = np.zeros((rows.shape[0], BITS // 64), dtype=np.uint64)
    _outline(rows.indptr, rows.indices, outlines)
    return outlines


@compiled()
def _outline(indptr, indices, outlines):  # type: ignore[no-untyped-def]
    for row in range(outlines.shape[0]):
        for p in range(indptr[row], indptr[row + 1]):
            bit = indices[p] % BITS
            outlines[row, bit // 64] |= np.uint64(1) << np.uint64(bit % 64)


@compiled()
def fill_losses(indices, weights, losses):  # type: ignore[no-untyped-def]
    """Fill losses[nibble, value]: the squared weight in those of its four bits that `value` has not."""
    squares = np.zeros(BITS)
    for p in range(indices.shape[0]):
        squares[indices[p] % BITS] += np.float64(weights[p]) ** 2
    for nibble in range(NIBBLES):
        losses[nibble, 15] = 0.0
        for value in range(14, -1, -1):
            lowest = 0
            while value >> lowest & 1:
                lowest += 1
            losses[nibble, value] = losses[nibble, value | 1 << lowest] + squares[4 * nibble + lowest]


@compiled()
def loses_more(outline, losses, most):  # type: ignore[no-untyped-def]
    """Tell whether a row (see `fill_losses`) has more squared weight in words that the outlined one lacks."""
    even, odd = 0.0, 0.0  # two sums, so that neither addition waits for the other
    for word in range(outline.shape[0]):
        bits = outline[word]
        for nibble in range(0, 16, 2):
            even += losses[16 * word + nibble, bits & np.uint64(15)]
            odd += losses[16 * word + nibble + 1, bits >> np.uint64(4) & np.uint64(15)]
            bits >>= np.uint64(8)
        if even + odd > most:
            return True
    return False
