"""Signatures that pairs of near-duplicates share, and filters that reject pairs before they are compared.

A signature is a list of tokens such that any two documents that can be duplicates have a token in common.
There are two exact ways to build signatures; which one is cheaper depends on the documents:

- Prefix filter on words. Order the words of every document by frequency, the rarest first. All common words
  of two rows follow their first common word, so the cosine is at most the product of the norms of both rows
  from there on (their suffix norms). Both norms must reach the threshold: words with a smaller suffix norm
  are left out.
- Parts of the code. Split it into radius + 1 parts: two codes that differ in at most `radius` bits differ in
  at most `radius` parts, so one part is equal.

The bitmap filter stores which words a document has in 128 bits: the bit of a word is its column modulo 128,
so a bit that is not set means that the document has none of its words. The cosine of two unit rows is at most
the norm of the first over the words of the second. The squared weight of the first in bits that the second
lacks is therefore lost, and it is a sum of 32 table entries.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from snuh._numba import njit
from snuh.codes import unpack

TOLERANCE = 1e-6  # unit rows have seven exact digits: rather one comparison too many than one too few
BITMAP_BITS, NIBBLES = 128, 32


@dataclass(frozen=True)
class Signatures:
    """The tokens of every document in CSR layout, each in 0 .. n_tokens - 1."""

    indptr: NDArray[np.int64]  # (docs + 1,)
    tokens: NDArray[np.int64]
    suffix_norm: NDArray[np.float32]  # the norm of the row from the token's word on; 1 if unknown
    n_tokens: int

    @property
    def n_pairs(self) -> int:
        """The number of pairs of documents that share a token, once for each token they share."""
        sizes = np.bincount(self.tokens, minlength=self.n_tokens)
        return int((sizes * (sizes - 1) // 2).sum())

    def within(self, groups: NDArray[np.int64]) -> Signatures:
        """Return signatures whose tokens documents of different groups never share."""
        keys = np.repeat(groups, np.diff(self.indptr)) * self.n_tokens + self.tokens
        distinct, tokens = np.unique(keys, return_inverse=True)
        return Signatures(self.indptr, tokens, self.suffix_norm, len(distinct))


def rarest_first(rows: sparse.csr_matrix) -> sparse.csr_matrix:
    """Renumber the columns by document frequency, so that every row lists its rarest words first."""
    frequency = np.bincount(rows.indices, minlength=rows.shape[1])
    number = np.empty(rows.shape[1], dtype=np.int32)
    number[np.argsort(frequency, kind="stable")] = np.arange(rows.shape[1], dtype=np.int32)
    ordered = sparse.csr_matrix((rows.data, number[rows.indices], rows.indptr), shape=rows.shape, copy=True)
    ordered.sort_indices()
    return ordered


def suffix_norms(rows: sparse.csr_matrix) -> NDArray[np.float32]:
    """Return for every stored value the norm of its row from there on."""
    norms = np.empty(rows.nnz, dtype=np.float32)
    _suffix_norms(rows.indptr, rows.data, norms)
    return norms


def word_signatures(
    rows: sparse.csr_matrix, suffix_norm: NDArray[np.float32], *, cosine: float
) -> Signatures:
    """Return the prefixes of rows ordered by `rarest_first`: two rows of at least `cosine` share a word."""
    in_prefix = suffix_norm >= cosine - TOLERANCE
    before = np.concatenate([[0], np.cumsum(in_prefix)])
    tokens = rows.indices[in_prefix].astype(np.int64)
    return Signatures(before[rows.indptr], tokens, suffix_norm[in_prefix], rows.shape[1])


def code_signatures(codes: NDArray[np.uint8], *, radius: int) -> Signatures:
    """Return the radius + 1 parts of every code; the radius must be below the number of bits."""
    bits = unpack(codes)
    parts = radius + 1
    edges = np.linspace(0, bits.shape[1], parts + 1).astype(int)
    tokens = np.empty((len(codes), parts), dtype=np.int64)
    n_tokens = 0
    for part in range(parts):
        packed = np.packbits(bits[:, edges[part] : edges[part + 1]], axis=1)
        distinct, values = np.unique(_as_keys(packed), return_inverse=True)
        tokens[:, part] = values + n_tokens
        n_tokens += len(distinct)
    indptr = np.arange(len(codes) + 1, dtype=np.int64) * parts
    return Signatures(indptr, tokens.ravel(), np.ones(tokens.size, dtype=np.float32), n_tokens)


def _as_keys(packed: NDArray[np.uint8]) -> NDArray[np.generic]:
    """View each row of bytes as one sortable value."""
    width = packed.shape[1]
    if width > 8:
        return np.ascontiguousarray(packed).view(np.dtype((np.void, width))).ravel()
    wide = np.zeros((len(packed), 8), dtype=np.uint8)
    wide[:, :width] = packed
    return wide.view(np.uint64).ravel()


@njit()
def _suffix_norms(indptr, data, norms):  # type: ignore[no-untyped-def]
    for row in range(indptr.shape[0] - 1):
        squares = 0.0
        for p in range(indptr[row + 1] - 1, indptr[row] - 1, -1):
            squares += np.float64(data[p]) ** 2
            norms[p] = np.sqrt(squares)


def row_bitmaps(rows: sparse.csr_matrix) -> NDArray[np.uint64]:
    """Return the bitmaps (docs, 2 words of 64 bits) of the words in each row."""
    bitmaps = np.zeros((rows.shape[0], BITMAP_BITS // 64), dtype=np.uint64)
    _set_bits(rows.indptr, rows.indices, bitmaps)
    return bitmaps


@njit()
def _set_bits(indptr, indices, bitmaps):  # type: ignore[no-untyped-def]
    for row in range(bitmaps.shape[0]):
        for p in range(indptr[row], indptr[row + 1]):
            bit = indices[p] % BITMAP_BITS
            bitmaps[row, bit // 64] |= np.uint64(1) << np.uint64(bit % 64)


@njit()
def fill_losses(indices, weights, losses):  # type: ignore[no-untyped-def]
    """Fill losses[nibble, value] with the squared weight of a row in the bits that `value` lacks."""
    squares = np.zeros(BITMAP_BITS)
    for p in range(indices.shape[0]):
        squares[indices[p] % BITMAP_BITS] += np.float64(weights[p]) ** 2
    for nibble in range(NIBBLES):
        losses[nibble, 15] = 0.0
        for value in range(14, -1, -1):
            lowest = 0
            while value >> lowest & 1:
                lowest += 1
            losses[nibble, value] = losses[nibble, value | 1 << lowest] + squares[4 * nibble + lowest]


@njit()
def exceeds_loss(bitmap, losses, limit):  # type: ignore[no-untyped-def]
    """Return whether a row (see `fill_losses`) has more squared weight than `limit` outside a bitmap."""
    even, odd = 0.0, 0.0  # two independent sums, which can be added in parallel
    for word in range(bitmap.shape[0]):
        bits = bitmap[word]
        for nibble in range(0, 16, 2):
            even += losses[16 * word + nibble, bits & np.uint64(15)]
            odd += losses[16 * word + nibble + 1, bits >> np.uint64(4) & np.uint64(15)]
            bits >>= np.uint64(8)
        if even + odd > limit:
            return True
    return False


def find_exact_duplicates(
    codes: NDArray[np.uint64], rows: sparse.csr_matrix, groups: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return for every document the first one with the same code, row and group, which may be itself.

    Documents are sorted by hash, so no pairs are compared. If two different documents have equal hashes
    (probability 2**-64 per pair), a duplicate of the second is not recognised here.
    """
    content = (codes, rows.indptr, rows.indices, rows.data.view(np.uint32), groups)
    _, firsts, inverse = np.unique(_hash_documents(*content), return_index=True, return_inverse=True)
    first: NDArray[np.int64] = firsts[inverse]
    _separate_unequal(*content, first)
    return first


@njit()
def _hash_documents(codes, indptr, indices, data, groups):  # type: ignore[no-untyped-def]
    hashes = np.empty(codes.shape[0], dtype=np.uint64)
    for doc in range(codes.shape[0]):
        value = mix(np.uint64(groups[doc]))
        for word in codes[doc]:
            value = mix(value ^ word)
        for p in range(indptr[doc], indptr[doc + 1]):
            value = mix(value ^ (np.uint64(indices[p]) << np.uint64(32) | np.uint64(data[p])))
        hashes[doc] = value
    return hashes


@njit()
def mix(value):  # type: ignore[no-untyped-def]
    """Return a 64-bit hash of a 64-bit integer."""
    # Multiply by an odd number and fold the high half down, twice: every input bit affects every output bit.
    value = (value + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return value ^ (value >> np.uint64(32))


@njit()
def _separate_unequal(codes, indptr, indices, data, groups, first):  # type: ignore[no-untyped-def]
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


@dataclass(frozen=True, eq=False)
class Distinct:
    """The distinct non-empty documents (by code, row and group), in order of preference."""

    codes: NDArray[np.uint64]  # (distinct, words of 64 bits)
    rows: sparse.csr_matrix  # (distinct, terms), the rarest term first
    suffix_norm: NDArray[np.float32]  # for each stored value the norm of its row from there on
    groups: NDArray[np.int64]  # (distinct,)
    origin: NDArray[np.int64]  # (distinct,) the document each one comes from
    inverse: NDArray[np.int64]  # (docs,) the index of each document among the distinct; -1 if it has no words


def find_distinct(
    codes: NDArray[np.uint8],
    rows: sparse.csr_matrix,
    *,
    groups: NDArray[np.int64],
    order: NDArray[np.int64],
) -> Distinct:
    """Leave out empty documents and exact duplicates; `order` lists all documents by preference."""
    order = order[np.diff(rows.indptr)[order] > 0]
    wide, rows, groups = as_words(codes[order]), rows[order], groups[order]
    first = find_exact_duplicates(wide, rows, groups)
    is_first = first == np.arange(len(first))
    number = np.cumsum(is_first) - 1
    inverse = np.full(len(codes), -1, dtype=np.int64)
    inverse[order] = number[first]
    ordered = rarest_first(rows[is_first])
    return Distinct(
        wide[is_first],
        ordered,
        suffix_norms(ordered),
        groups[is_first],
        origin=order[is_first],
        inverse=inverse,
    )


def as_words(codes: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return packed codes as words of 64 bits, padded with zeros."""
    width = -(-codes.shape[1] // 8) * 8
    padded = np.zeros((len(codes), width), dtype=np.uint8)
    padded[:, : codes.shape[1]] = codes
    return padded.view(np.uint64)
