"""Equal documents, found without comparing pairs: they cost a sort, however many there are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from snuh.compiling import compiled


def first_equals(
    codes: NDArray[np.uint64], rows: sparse.csr_matrix, groups: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return for every document the first one with the same code, row and group, which may be itself.

    Two different documents of equal hash (one chance in 2**64 a pair) only mean that a copy of the second
    one is not noticed here.
    """
    content = (codes, rows.indptr, rows.indices, rows.data.view(np.uint32), groups)
    _, firsts, kinds = np.unique(_hash_documents(*content), return_index=True, return_inverse=True)
    first: NDArray[np.int64] = firsts[kinds]
    _part_unequal(*content, first)
    return first


@compiled()
def _hash_documents(codes, indptr, indices, data, groups):  # type: ignore[no-untyped-def]
    hashes = np.empty(codes.shape[0], dtype=np.uint64)
    for doc in range(codes.shape[0]):
        value = mixed(np.uint64(groups[doc]))
        for word in codes[doc]:
            value = mixed(value ^ word)
        for p in range(indptr[doc], indptr[doc + 1]):
            value = mixed(value ^ (np.uint64(indices[p]) << np.uint64(32) | np.uint64(data[p])))
        hashes[doc] = value
    return hashes


@compiled()
def mixed(value):  # type: ignore[no-untyped-def]
    """Return a hash of 64 bits."""
    # Multiply by an odd number and fold the high half down, twice: every bit in reaches every bit out.
    value = (value + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return value ^ (value >> np.uint64(32))


@compiled()
def _part_unequal(codes, indptr, indices, data, groups, first):  # type: ignore[no-untyped-def]
    for doc in range(codes.shape[0]):
        other = first[doc]
        start, size = indptr[doc], indptr[doc + 1] - indptr[doc]
        start_other = indptr[other]
        same = groups[doc] == groups[other] and size == indptr[other + 1] - start_other
        same = same and (codes[doc] == codes[other]).all()
        for p in range(size if same else 0):
            if indices[start + p] != indices[start_other + p] or data[start + p] != data[start_other + p]:
                same = False
                break
        if not same:
            first[doc] = doc
