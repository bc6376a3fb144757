"""What the kernels of the approximate search share: lists of the best, the similarity of two documents."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from snuh.compiling import compiled

SPAN = 20_000  # rows of one call, which Ctrl-C waits for


def spans(docs: int) -> Iterator[tuple[int, int]]:
    """Return the first row of each call of a kernel, and the one after its last."""
    return ((first, min(first + SPAN, docs)) for first in range(0, docs, SPAN))


# numba has no type stubs, and the kernels' types are those of their arguments.
@compiled()
def insert(rows, similarity, row, value):  # type: ignore[no-untyped-def]
    """Put a row into a list ordered by (falling similarity, row), if it is good enough.

    Empty places have similarity 0 and row -1, so only what is above 0 is good enough.
    """
    place = len(rows)
    while place > 0 and (
        similarity[place - 1] < value or (similarity[place - 1] == value and rows[place - 1] > row)
    ):
        place -= 1
        if place + 1 < len(rows):
            rows[place + 1] = rows[place]
            similarity[place + 1] = similarity[place]
    if place < len(rows):
        rows[place] = row
        similarity[place] = value


@compiled(reorder=True)
def similarity_to(line, own, other, indptr, indices, data, dense, share):  # type: ignore[no-untyped-def]
    """Return the similarity of a document, as its terms' weights (terms,) and dense row, to another."""
    terms = np.float32(0)
    for p in range(indptr[other], indptr[other + 1]):
        terms += line[indices[p]] * data[p]
    product = np.float32(0)
    for d in range(len(own)):
        product += own[d] * dense[other, d]
    return share * terms + product
