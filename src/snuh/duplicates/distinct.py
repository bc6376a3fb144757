"""The documents that are worth comparing: each kind once, and none without a word."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from snuh.duplicates.copies import first_equals
from snuh.duplicates.signs import rarest_first, row_reach


@dataclass(frozen=True, eq=False)
class Distinct:
    """The first document of every kind (equal code, row and group), in order of preference."""

    codes: NDArray[np.uint64]  # (kinds, words of 64 bits)
    rows: sparse.csr_matrix  # (kinds, terms), the rarest term first
    reach: NDArray[np.float32]  # for each stored value the length of its row from there on
    groups: NDArray[np.int64]  # (kinds,)
    origin: NDArray[np.int64]  # (kinds,) which document it is
    kind: NDArray[np.int64]  # (docs,) the kind of every document; -1 where it has no word


def find_distinct(
    codes: NDArray[np.uint8],
    rows: sparse.csr_matrix,
    *,
    groups: NDArray[np.int64],
    order: NDArray[np.int64],
) -> Distinct:
    """Leave out documents without a word, and copies; `order` lists all documents, the preferred first."""
    order = order[np.diff(rows.indptr)[order] > 0]
    wide, rows, groups = as_words(codes[order]), rows[order], groups[order]
    first = first_equals(wide, rows, groups)
    is_first = first == np.arange(len(first))
    number = np.cumsum(is_first) - 1
    kind = np.full(len(codes), -1, dtype=np.int64)
    kind[order] = number[first]
    ordered = rarest_first(rows[is_first])
    return Distinct(
        wide[is_first], ordered, row_reach(ordered), groups[is_first], origin=order[is_first], kind=kind
    )


def as_words(codes: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return packed codes as words of 64 bits, filled up with zeros."""
    width = -(-codes.shape[1] // 8) * 8
    filled = np.zeros((len(codes), width), dtype=np.uint8)
    filled[:, : codes.shape[1]] = codes
    return filled.view(np.uint64)
