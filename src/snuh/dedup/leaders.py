"""Leader clustering: in order, each document joins the most similar kept document, or is kept itself.

Only documents that share a token of their signatures are compared. Comparing all documents with a frequent
word costs the square of their number, so the list of such a word is split by the next common word. Let c1 <
... < cn be the first common words of two rows in column order, and S these words together with all words from
the next common one on. All common words lie in S, so the cosine is at most the norm of either row within S: a
tuple of words whose norm within S is too small is no token. Rows without further common words share the token
that says so. Two rows of sufficient cosine therefore still share a token after each split. A list is split
only if that saves work, so the tuples become longer as the documents become more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from snuh._numba import njit
from snuh.dedup.signatures import (
    BITMAP_BITS,
    NIBBLES,
    TOLERANCE,
    Signatures,
    exceeds_loss,
    fill_losses,
    mix,
    row_bitmaps,
)
from snuh.index.kernels import popcount

MIN_LIST_SIZE = 512  # documents: shorter lists are not split
ENTRY_COST = (
    32  # code comparisons that take as long as creating one entry of a list (`benchmarks.duplicates`)
)


@dataclass(frozen=True)
class Leaders:
    """The leader of every document: the kept document that it joins, or itself."""

    leader: NDArray[np.int64]  # (docs,)
    similarity: NDArray[np.float32]  # (docs,) to the leader
    codes_compared: int
    rows_compared: int


class _Documents(NamedTuple):
    codes: NDArray[np.uint64]
    indptr: NDArray[Any]  # int32, or int64 for very large matrices
    indices: NDArray[np.int32]
    weights: NDArray[np.float32]
    suffix_norm: NDArray[np.float32]  # the norm of the row from each word on
    bitmaps: NDArray[np.uint64]  # (docs, 2)
    squares: NDArray[np.float64]  # (docs,) the squared norm of each row: 1 except for rounding


class _Postings(NamedTuple):
    """The kept documents of each token: `starts[token]` up to `ends[token]` in the other arrays."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    docs: NDArray[np.int32]
    suffix_norm: NDArray[np.float32]
    codes: NDArray[np.uint64]  # the first word of the code, in which most pairs already differ too much
    bitmaps: NDArray[np.uint64]


class _Bounds(NamedTuple):
    radius: int
    threshold: np.float32
    cosine: float
    loss: float  # the squared weight of a unit row that may lie in words that the other lacks
    is_overlap: bool


def assign_leaders(
    codes: NDArray[np.uint64],
    rows: sparse.csr_matrix,
    suffix_norm: NDArray[np.float32],
    signatures: Signatures,
    *,
    radius: int,
    threshold: np.float32,
    cosine: float,
    is_overlap: bool,
) -> Leaders:
    """Apply the leader rule to the documents in their order, comparing those that share a token.

    Args:
        codes: (docs, words of 64 bits).
        rows: unit rows, with the column order that the signatures were built with.
        suffix_norm: the norm of the row from each stored value on.
        signatures: built for at least this radius, or at most this cosine.
        radius: maximum Hamming distance of two codes.
        threshold: minimum similarity.
        cosine: minimum cosine of the two rows that the threshold implies.
        is_overlap: whether the similarity is the overlap of the sets of words rather than the cosine.
    """
    documents = _Documents(
        codes, rows.indptr, rows.indices, rows.data, suffix_norm, row_bitmaps(rows), _sum_squares(rows)
    )
    min_cosine = max(0.0, cosine - TOLERANCE)
    bounds = _Bounds(radius, threshold, min_cosine, 1.0 - min_cosine**2 + TOLERANCE, is_overlap)
    leader, similarity, codes_compared, rows_compared = _assign_leaders(
        documents,
        signatures.indptr,
        signatures.tokens,
        signatures.suffix_norm,
        _empty_postings(signatures),
        bounds,
    )
    return Leaders(leader, similarity, int(codes_compared), int(rows_compared))


def _sum_squares(rows: sparse.csr_matrix) -> NDArray[np.float64]:
    squares = sparse.csr_matrix((rows.data.astype(np.float64) ** 2, rows.indices, rows.indptr), rows.shape)
    return np.asarray(squares.sum(axis=1), dtype=np.float64).ravel()


def _empty_postings(signatures: Signatures) -> _Postings:
    """Allocate room for all documents of each token."""
    starts = np.zeros(signatures.n_tokens, dtype=np.int64)
    np.cumsum(np.bincount(signatures.tokens, minlength=signatures.n_tokens)[:-1], out=starts[1:])
    size = len(signatures.tokens)
    return _Postings(
        starts,
        starts.copy(),
        docs=np.empty(size, dtype=np.int32),
        suffix_norm=np.empty(size, dtype=np.float32),
        codes=np.empty(size, dtype=np.uint64),
        bitmaps=np.empty((size, BITMAP_BITS // 64), dtype=np.uint64),
    )


@njit()
def _assign_leaders(documents, indptr, tokens, suffix_norm, postings, bounds):  # type: ignore[no-untyped-def]
    docs = documents.codes.shape[0]
    leader = np.arange(docs)
    similarity = np.ones(docs, dtype=np.float32)
    seen = np.full(docs, -1, dtype=np.int32)
    losses = np.empty((NIBBLES, 16))
    counts = np.zeros(2, dtype=np.int64)
    for doc in range(docs):
        begin, end = indptr[doc], indptr[doc + 1]
        words = slice(documents.indptr[doc], documents.indptr[doc + 1])
        fill_losses(documents.indices[words], documents.weights[words], losses)
        best, value = _most_similar(
            documents,
            doc,
            tokens[begin:end],
            suffix_norm[begin:end],
            postings,
            bounds,
            losses,
            seen,
            counts,
        )
        if best >= 0:
            leader[doc] = best
            similarity[doc] = value
        else:
            _add_leader(documents, doc, tokens[begin:end], suffix_norm[begin:end], postings)
    return leader, similarity, counts[0], counts[1]


@njit()
def _most_similar(documents, doc, tokens, suffix_norm, postings, bounds, losses, seen, counts):  # type: ignore[no-untyped-def]
    best, best_value = -1, np.float32(0.0)
    code = documents.codes[doc, 0]
    for t in range(tokens.shape[0]):
        begin, end = postings.starts[tokens[t]], postings.ends[tokens[t]]
        counts[0] += end - begin
        for p in range(begin, end):
            if np.int64(popcount(code ^ postings.codes[p])) > bounds.radius:
                continue
            # A pair that one of these two filters rejects is rejected at every token it shares.
            if suffix_norm[t] * postings.suffix_norm[p] < bounds.cosine:
                continue
            if exceeds_loss(postings.bitmaps[p], losses, bounds.loss):
                continue
            other = postings.docs[p]
            if seen[other] == doc:
                continue
            seen[other] = doc
            if _distance(documents.codes, doc, other) > bounds.radius:
                continue
            counts[1] += 1
            value = _similarity(documents, doc, other, bounds)
            is_better = value > best_value or (value == best_value and other < best)
            if value >= bounds.threshold and is_better:
                best, best_value = other, value
    return best, best_value


@njit()
def _similarity(documents, doc, other, bounds):  # type: ignore[no-untyped-def]
    """Merge both rows; return 0 as soon as the rest of them cannot reach the bound any more."""
    indptr, indices, weights = documents.indptr, documents.indices, documents.weights
    suffix_norm = documents.suffix_norm
    p, q, p_end, q_end = indptr[doc], indptr[other], indptr[doc + 1], indptr[other + 1]
    words = p_end - p + q_end - q
    product, shared = 0.0, 0
    while p < p_end and q < q_end:
        if product + suffix_norm[p] * suffix_norm[q] < bounds.cosine:
            return np.float32(0.0)
        if indices[p] == indices[q]:
            product += np.float64(weights[p]) * np.float64(weights[q])
            shared += 1
            p += 1
            q += 1
        elif indices[p] < indices[q]:
            p += 1
        else:
            q += 1
    if bounds.is_overlap:
        return np.float32(shared / (words - shared))
    norms = np.sqrt(documents.squares[doc] * documents.squares[other])
    return np.float32(min(product / norms, 1.0))


@njit()
def _add_leader(documents, doc, tokens, suffix_norm, postings):  # type: ignore[no-untyped-def]
    for t in range(tokens.shape[0]):
        p = postings.ends[tokens[t]]
        postings.docs[p] = doc
        postings.suffix_norm[p] = suffix_norm[t]
        postings.codes[p] = documents.codes[doc, 0]
        postings.bitmaps[p] = documents.bitmaps[doc]
        postings.ends[tokens[t]] += 1


@njit()
def _distance(codes, left, right):  # type: ignore[no-untyped-def]
    distance = np.int64(0)
    for word in range(codes.shape[1]):
        distance += np.int64(popcount(codes[left, word] ^ codes[right, word]))
    return distance


@dataclass(frozen=True)
class _Entries:
    """Entries of lists of documents; each list belongs to a tuple of common words."""

    docs: NDArray[np.int64]
    lists: NDArray[np.int64]  # list numbers from 0, with gaps
    positions: NDArray[np.int64]  # of the last common word in the rows' data; -1: no further common words
    squares: NDArray[np.float64]  # the row's squared norm over the common words before that

    def __getitem__(self, mask: NDArray[np.bool_]) -> _Entries:
        return _Entries(self.docs[mask], self.lists[mask], self.positions[mask], self.squares[mask])


def split_signatures(
    signatures: Signatures, rows: sparse.csr_matrix, suffix_norm: NDArray[np.float32], *, cosine: float
) -> Signatures:
    """Return signatures that fewer pairs of documents share, but still all pairs of at least `cosine`.

    Args:
        signatures: built by `word_signatures` from these rows, possibly restricted by `within`.
        rows: unit rows, ordered by `rarest_first`.
        suffix_norm: the norm of the row from each stored value on.
        cosine: minimum cosine of two rows that must share a token.
    """
    min_square = max(0.0, cosine - TOLERANCE) ** 2
    docs = np.repeat(np.arange(rows.shape[0]), np.diff(signatures.indptr))
    # The tokens of a row are its first words, so the n-th token is the n-th word.
    positions = np.arange(len(docs)) - signatures.indptr[docs] + rows.indptr[docs]
    entries = _Entries(docs, signatures.tokens, positions, np.zeros(len(docs)))
    done: list[_Entries] = []
    while not done or len(entries.docs):
        unsplit, entries = _split_once(entries, rows, suffix_norm, min_square)
        done.append(unsplit)
    return _as_signatures(done, suffix_norm, docs=rows.shape[0])


def _split_once(
    entries: _Entries, rows: sparse.csr_matrix, suffix_norm: NDArray[np.float32], min_square: float
) -> tuple[_Entries, _Entries]:
    """Return the entries of lists that are not split, and those that replace the others."""
    sizes = np.bincount(entries.lists)
    is_long = (sizes[entries.lists] > MIN_LIST_SIZE) & (entries.positions >= 0)
    extended, origin = _extend(entries[is_long], rows, suffix_norm, min_square)
    # A list costs one comparison per pair; the lists that replace it cost theirs and their creation.
    new_sizes = np.bincount(extended.lists)
    cost = np.bincount(origin, (new_sizes[extended.lists] - 1) / 2 + ENTRY_COST, minlength=len(sizes))
    saves = cost < sizes * (sizes - 1) / 2
    return entries[~(is_long & saves[entries.lists])], extended[saves[origin]]


def _extend(
    entries: _Entries, rows: sparse.csr_matrix, suffix_norm: NDArray[np.float32], min_square: float
) -> tuple[_Entries, NDArray[np.int64]]:
    """Return an entry for each word that can be the next common one, and the list that it comes from."""
    squares = entries.squares + rows.data[entries.positions].astype(np.float64) ** 2
    sizes = _count_next(entries.positions, rows.indptr[entries.docs + 1], squares, suffix_norm, min_square)
    starts = np.cumsum(sizes) - sizes
    total = int(sizes.sum())
    positions, lists = np.empty(total, dtype=np.int64), np.empty(total, dtype=np.int64)
    buckets = 1 << max(1, total - 1).bit_length()
    parents = (entries.positions, entries.lists, squares >= min_square, starts, sizes)
    _fill_next(*parents, rows.indices, positions, lists, buckets)
    origin = np.repeat(entries.lists, sizes)
    docs = np.repeat(entries.docs, sizes)
    return _Entries(docs, lists, positions, np.repeat(squares, sizes)), origin


@njit()
def _count_next(positions, ends, squares, suffix_norm, min_square):  # type: ignore[no-untyped-def]
    counts = np.zeros(positions.shape[0], dtype=np.int64)
    for entry in range(positions.shape[0]):
        p = positions[entry] + 1
        while p < ends[entry] and squares[entry] + np.float64(suffix_norm[p]) ** 2 >= min_square:
            p += 1
        counts[entry] = p - positions[entry] - 1 + (squares[entry] >= min_square)
    return counts


@njit()
def _fill_next(  # type: ignore[no-untyped-def]
    parents, parent_lists, has_end, starts, sizes, words, positions, lists, buckets
):
    for entry in range(parents.shape[0]):
        for step in range(sizes[entry]):
            position, word = parents[entry] + 1 + step, np.int64(-1)
            if has_end[entry] and step == sizes[entry] - 1:
                position = -1
            else:
                word = np.int64(words[position])
            positions[starts[entry] + step] = position
            # Lists that share a bucket cost needless comparisons, but no pair is missed.
            key = mix(np.uint64(parent_lists[entry]) << np.uint64(32) ^ np.uint64(word + 1))
            lists[starts[entry] + step] = np.int64(key & np.uint64(buckets - 1))


def _as_signatures(parts: list[_Entries], suffix_norm: NDArray[np.float32], *, docs: int) -> Signatures:
    """Collect the entries of all lists by document."""
    offsets = np.cumsum([0] + [part.lists.max(initial=-1) + 1 for part in parts])
    entry_docs = np.concatenate([part.docs for part in parts])
    tokens = np.concatenate([part.lists + offset for part, offset in zip(parts, offsets, strict=False)])
    positions = np.concatenate([part.positions for part in parts])
    rest = np.where(positions >= 0, suffix_norm[positions], 0.0).astype(np.float64)
    norms = np.sqrt(np.concatenate([part.squares for part in parts]) + rest**2).astype(np.float32)
    order = np.argsort(entry_docs, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(entry_docs, minlength=docs))])
    return Signatures(indptr, tokens[order], norms[order], int(offsets[-1]))
