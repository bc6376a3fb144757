"""Signs: short lists of marks such that two documents that can be duplicates have one in common.

There are two exact ways to make them, and which one is cheaper depends on the documents:

- Words. Order the words of every document alike, the rarest first. All words that two rows have in common lie
  from the first common one on, so their cosine is at most the product of the two lengths from there. Each of
  the lengths must then reach the threshold: the words from which on a row is too short are no signs.
- Parts of the code. Split it into radius + 1 parts: two codes that differ in at most `radius` bits differ in
  at most `radius` parts, so one part is equal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from snuh._numba import njit
from snuh.codes import unpack

SLACK = 1e-6  # rows of unit length have it to seven digits: better one comparison too many than one too few


@dataclass(frozen=True)
class Signs:
    """The marks of every document, as in a CSR matrix, each in 0 .. kinds - 1."""

    indptr: NDArray[np.int64]  # (docs + 1,)
    marks: NDArray[np.int64]
    reach: NDArray[np.float32]  # the length of the row from the mark's word on; 1 where that is not known
    kinds: int

    @property
    def work(self) -> int:
        """How many pairs of documents share a mark, counted once for each mark they share."""
        holders = np.bincount(self.marks, minlength=self.kinds)
        return int((holders * (holders - 1) // 2).sum())

    def within(self, groups: NDArray[np.int64]) -> Signs:
        """Return signs that documents of different groups never share."""
        owner = np.repeat(groups, np.diff(self.indptr))
        pairs = owner * self.kinds + self.marks
        found, marks = np.unique(pairs, return_inverse=True)
        return Signs(self.indptr, marks, self.reach, len(found))


def rarest_first(rows: sparse.csr_matrix) -> sparse.csr_matrix:
    """Renumber the columns by how many rows have them, so that every row lists its rarest words first."""
    holders = np.bincount(rows.indices, minlength=rows.shape[1])
    number = np.empty(rows.shape[1], dtype=np.int32)
    number[np.argsort(holders, kind="stable")] = np.arange(rows.shape[1], dtype=np.int32)
    ordered = sparse.csr_matrix((rows.data, number[rows.indices], rows.indptr), shape=rows.shape, copy=True)
    ordered.sort_indices()
    return ordered


def row_reach(rows: sparse.csr_matrix) -> NDArray[np.float32]:
    """Return for every stored value the length of its row from there on."""
    reach = np.empty(rows.nnz, dtype=np.float32)
    _measure_reach(rows.indptr, rows.data, reach)
    return reach


def word_signs(rows: sparse.csr_matrix, reach: NDArray[np.float32], *, cosine: float) -> Signs:
    """Return the first words of rows ordered by `rarest_first`: two rows of at least `cosine` share one."""
    is_sign = reach >= cosine - SLACK
    before = np.concatenate([[0], np.cumsum(is_sign)])
    marks = rows.indices[is_sign].astype(np.int64)
    return Signs(before[rows.indptr], marks, reach[is_sign], rows.shape[1])


def part_signs(codes: NDArray[np.uint8], *, radius: int) -> Signs:
    """Return for every code its radius + 1 parts; the radius must be below the number of bits."""
    bits = unpack(codes)
    parts = radius + 1
    edges = np.linspace(0, bits.shape[1], parts + 1).astype(int)
    marks = np.empty((len(codes), parts), dtype=np.int64)
    kinds = 0
    for part in range(parts):
        packed = np.packbits(bits[:, edges[part] : edges[part + 1]], axis=1)
        found, values = np.unique(_as_keys(packed), return_inverse=True)
        marks[:, part] = values + kinds
        kinds += len(found)
    indptr = np.arange(len(codes) + 1, dtype=np.int64) * parts
    return Signs(indptr, marks.ravel(), np.ones(marks.size, dtype=np.float32), kinds)


def _as_keys(packed: NDArray[np.uint8]) -> NDArray[np.generic]:
    """View each row of bytes as one thing that can be sorted."""
    width = packed.shape[1]
    if width > 8:
        return np.ascontiguousarray(packed).view(np.dtype((np.void, width))).ravel()
    wide = np.zeros((len(packed), 8), dtype=np.uint8)
    wide[:, :width] = packed
    return wide.view(np.uint64).ravel()


@njit()
def _measure_reach(indptr, data, reach):  # type: ignore[no-untyped-def]
    for row in range(indptr.shape[0] - 1):
        squares = 0.0
        for p in range(indptr[row + 1] - 1, indptr[row] - 1, -1):
            squares += np.float64(data[p]) ** 2
            reach[p] = np.sqrt(squares)


# Outlines: which words a document has, in 128 bits, to turn pairs away before their rows are read.
#
# A word's bit is its column modulo 128, so a bit that is not set says that the document has none of its
# words.
# The cosine of two rows of unit length is at most the length of the first, taken over the words that the
# second
# has. So all of the first that lies in bits the second has not is lost, and that is a sum of 32 table
# entries.

BITS, NIBBLES = 128, 32


def outline_rows(rows: sparse.csr_matrix) -> NDArray[np.uint64]:
    """Return the outlines (docs, 2 words of 64 bits)."""
    outlines = np.zeros((rows.shape[0], BITS // 64), dtype=np.uint64)
    _outline(rows.indptr, rows.indices, outlines)
    return outlines


@njit()
def _outline(indptr, indices, outlines):  # type: ignore[no-untyped-def]
    for row in range(outlines.shape[0]):
        for p in range(indptr[row], indptr[row + 1]):
            bit = indices[p] % BITS
            outlines[row, bit // 64] |= np.uint64(1) << np.uint64(bit % 64)


@njit()
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


@njit()
def loses_more(outline, losses, limit):  # type: ignore[no-untyped-def]
    """Tell whether a row (see `fill_losses`) has more squared weight in words that the outlined one lacks."""
    even, odd = 0.0, 0.0  # two sums, so that neither addition waits for the other
    for word in range(outline.shape[0]):
        bits = outline[word]
        for nibble in range(0, 16, 2):
            even += losses[16 * word + nibble, bits & np.uint64(15)]
            odd += losses[16 * word + nibble + 1, bits >> np.uint64(4) & np.uint64(15)]
            bits >>= np.uint64(8)
        if even + odd > limit:
            return True
    return False


# Equal documents, found without comparing pairs: they cost a sort, however many there are.


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


@njit()
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


@njit()
def mixed(value):  # type: ignore[no-untyped-def]
    """Return a hash of 64 bits."""
    # Multiply by an odd number and fold the high half down, twice: every bit in reaches every bit out.
    value = (value + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return value ^ (value >> np.uint64(32))


@njit()
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


# The documents that are worth comparing: each kind once, and none without a word.


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
