"""The leader rule: in order, a document joins the kept one most similar to it, or is kept itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from snuh.compiling import compiled
from snuh.duplicates.outlines import BITS, NIBBLES, fill_losses, loses_more, outline_rows
from snuh.duplicates.signs import SLACK, Signs


@dataclass(frozen=True)
class Leaders:
    """For every document, in order, whom it joins: itself where it is kept."""

    leader: NDArray[np.int64]  # (docs,)
    similarity: NDArray[np.float32]  # (docs,), 1 where it is kept
    codes_compared: int
    rows_compared: int


class _Documents(NamedTuple):
    codes: NDArray[np.uint64]
    indptr: NDArray[Any]  # int32, or int64 for very many words
    indices: NDArray[np.int32]
    weights: NDArray[np.float32]
    reach: NDArray[np.float32]  # the length of the row from each word on
    outlines: NDArray[np.uint64]  # (docs, 2)
    squares: NDArray[np.float64]  # (docs,) the sum of each row's squared weights, which is 1 but for rounding


class _Holders(NamedTuple):
    """The kept documents that have each mark: `starts[mark]` up to `ends[mark]` of the other arrays."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    docs: NDArray[np.int32]
    reach: NDArray[np.float32]
    codes: NDArray[np.uint64]  # the first word of the code: most pairs differ too much in that already
    outlines: NDArray[np.uint64]


class _Bounds(NamedTuple):
    radius: int
    threshold: np.float32
    cosine: float
    loss: float  # how much of a row of squared length 1 may lie in words that the other has not
    is_overlap: bool


def elect(
    codes: NDArray[np.uint64],
    rows: sparse.csr_matrix,
    reach: NDArray[np.float32],
    signs: Signs,
    *,
    radius: int,
    threshold: np.float32,
    cosine: float,
    is_overlap: bool,
) -> Leaders:
    """Apply the leader rule to documents in their order; only those that share a sign are compared.

    Args:
        codes: (docs, words of 64 bits).
        rows: of unit length, in the order of columns that the signs were made with.
        reach: the length of the row from each stored value on.
        signs: made for at least this radius, or at most this cosine.
        radius: the most bits in which two codes may differ.
        threshold: the least similarity.
        cosine: what the cosine of the two rows must reach for that.
        is_overlap: whether the similarity is the overlap of the sets of words, rather than the cosine.
    """
    documents = _Documents(
        codes, rows.indptr, rows.indices, rows.data, reach, outline_rows(rows), _sum_squares(rows)
    )
    enough = max(0.0, cosine - SLACK)
    bounds = _Bounds(radius, threshold, enough, 1.0 - enough**2 + SLACK, is_overlap)
    marks = (signs.indptr, signs.marks, signs.reach)
    outcome = _elect(documents, *marks, _no_holders(signs), bounds)
    leader, similarity, codes_compared, rows_compared = outcome
    return Leaders(leader, similarity, int(codes_compared), int(rows_compared))


def _sum_squares(rows: sparse.csr_matrix) -> NDArray[np.float64]:
    squares = sparse.csr_matrix((rows.data.astype(np.float64) ** 2, rows.indices, rows.indptr), rows.shape)
    return np.asarray(squares.sum(axis=1), dtype=np.float64).ravel()


def _no_holders(signs: Signs) -> _Holders:
    """Make room for all documents that have each mark, with none in it."""
    starts = np.zeros(signs.kinds, dtype=np.int64)
    np.cumsum(np.bincount(signs.marks, minlength=signs.kinds)[:-1], out=starts[1:])
    room = len(signs.marks)
    return _Holders(
        starts,
        starts.copy(),
        docs=np.empty(room, dtype=np.int32),
        reach=np.empty(room, dtype=np.float32),
        codes=np.empty(room, dtype=np.uint64),
        outlines=np.empty((room, BITS // 64), dtype=np.uint64),
    )


@compiled()
def _elect(documents, indptr, marks, reach, holders, bounds):  # type: ignore[no-untyped-def]
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
            documents, doc, marks[begin:end], reach[begin:end], holders, bounds, losses, seen, counts
        )
        if best >= 0:
            leader[doc] = best
            similarity[doc] = value
        else:
            _keep(documents, doc, marks[begin:end], reach[begin:end], holders)
    return leader, similarity, counts[0], counts[1]


@compiled()
def _most_similar(documents, doc, marks, reach, holders, bounds, losses, seen, counts):  # type: ignore[no-untyped-def]
    best, best_value = -1, np.float32(0.0)
    code = documents.codes[doc, 0]
    for s in range(marks.shape[0]):
        begin, end = holders.starts[marks[s]], holders.ends[marks[s]]
        counts[0] += end - begin
        for place in range(begin, end):
            if _ones(code ^ holders.codes[place]) > bounds.radius:
                continue
            # Where these two turn a pair away, they do so at every mark it shares.
            if reach[s] * holders.reach[place] < bounds.cosine:
                continue
            if loses_more(holders.outlines[place], losses, bounds.loss):
                continue
            other = holders.docs[place]
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


@compiled()
def _similarity(documents, doc, other, bounds):  # type: ignore[no-untyped-def]
    """Walk through both rows in step; 0 as soon as what is left of them cannot reach the bound any more."""
    indptr, indices, weights, reach = documents.indptr, documents.indices, documents.weights, documents.reach
    p, q, p_end, q_end = indptr[doc], indptr[other], indptr[doc + 1], indptr[other + 1]
    words = p_end - p + q_end - q
    product, shared = 0.0, 0
    while p < p_end and q < q_end:
        if product + reach[p] * reach[q] < bounds.cosine:
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
    lengths = np.sqrt(documents.squares[doc] * documents.squares[other])
    return np.float32(min(product / lengths, 1.0))


@compiled()
def _keep(documents, doc, marks, reach, holders):  # type: ignore[no-untyped-def]
    for s in range(marks.shape[0]):
        place = holders.ends[marks[s]]
        holders.docs[place] = doc
        holders.reach[place] = reach[s]
        holders.codes[place] = documents.codes[doc, 0]
        holders.outlines[place] = documents.outlines[doc]
        holders.ends[marks[s]] += 1


@compiled()
def _distance(codes, left, right):  # type: ignore[no-untyped-def]
    differing = 0
    for word in range(codes.shape[1]):
        differing += _ones(codes[left, word] ^ codes[right, word])
    return differing


@compiled()
def _ones(v):  # type: ignore[no-untyped-def]
    # Counted in pairs, fours and bytes: the compiler knows this form, and uses the processor's instruction.
    v = v - ((v >> np.uint64(1)) & np.uint64(0x5555555555555555))
    v = (v & np.uint64(0x3333333333333333)) + ((v >> np.uint64(2)) & np.uint64(0x3333333333333333))
    v = (v + (v >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((v * np.uint64(0x0101010101010101)) >> np.uint64(56))
