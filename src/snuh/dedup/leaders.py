"""The leader rule: in order, a document joins the kept one most similar to it, or is kept itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from snuh._numba import njit
from snuh.dedup.signatures import BITS, NIBBLES, SLACK, Signs, fill_losses, loses_more, mixed, outline_rows


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


@njit()
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


@njit()
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


@njit()
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


@njit()
def _keep(documents, doc, marks, reach, holders):  # type: ignore[no-untyped-def]
    for s in range(marks.shape[0]):
        place = holders.ends[marks[s]]
        holders.docs[place] = doc
        holders.reach[place] = reach[s]
        holders.codes[place] = documents.codes[doc, 0]
        holders.outlines[place] = documents.outlines[doc]
        holders.ends[marks[s]] += 1


@njit()
def _distance(codes, left, right):  # type: ignore[no-untyped-def]
    differing = 0
    for word in range(codes.shape[1]):
        differing += _ones(codes[left, word] ^ codes[right, word])
    return differing


@njit()
def _ones(v):  # type: ignore[no-untyped-def]
    # Counted in pairs, fours and bytes: the compiler knows this form, and uses the processor's instruction.
    v = v - ((v >> np.uint64(1)) & np.uint64(0x5555555555555555))
    v = (v & np.uint64(0x3333333333333333)) + ((v >> np.uint64(2)) & np.uint64(0x3333333333333333))
    v = (v + (v >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((v * np.uint64(0x0101010101010101)) >> np.uint64(56))


# Signs of several words, where single words are held by too many documents.
#
# A word that many documents have says little, and comparing all that have it costs the square of their
# number.
# So its list is split by the next word that two documents have in common. Let c1 < ... < cn be the first
# common
# words of two rows, in the order of the columns, and S the words c1 ... cn together with all from the next
# common one on. Everything in common lies in S, so the cosine is at most the length of either row within S: a
# tuple of words whose S is too short is no sign. Rows with nothing in common after cn share the sign that
# says
# so. Two rows of enough cosine therefore share a sign after each split, as they did before it.
#
# A list is split only where that saves work, so the tuples become longer as the documents become more.

SMALLEST = 512  # documents: a shorter list is not worth splitting
ENTRY_COST = 32  # comparisons of two codes that take as long as one entry of a list (`benchmarks.duplicates`)


@dataclass(frozen=True)
class _Entries:
    """Documents in lists, entry by entry."""

    docs: NDArray[np.int64]
    lists: NDArray[np.int64]  # from 0; there are numbers that no list has
    places: NDArray[np.int64]  # where in the rows the last common word is; -1: nothing in common is left
    fixed: NDArray[np.float64]  # the row's squared length in the common words before that

    def __getitem__(self, chosen: NDArray[np.bool_]) -> _Entries:
        return _Entries(self.docs[chosen], self.lists[chosen], self.places[chosen], self.fixed[chosen])


def split_signs(signs: Signs, rows: sparse.csr_matrix, reach: NDArray[np.float32], *, cosine: float) -> Signs:
    """Return signs that fewer pairs of documents share, but still all pairs of at least `cosine`.

    Args:
        signs: made by `word_signs` from these rows, and possibly parted by `within`.
        rows: of unit length, ordered by `rarest_first`.
        reach: the length of the row from each stored value on.
        cosine: the least cosine of two rows that must share a sign.
    """
    enough = max(0.0, cosine - SLACK) ** 2
    docs = np.repeat(np.arange(rows.shape[0]), np.diff(signs.indptr))
    # The signs of a row are its first words, so the n-th of them is its n-th word.
    places = np.arange(len(docs)) - signs.indptr[docs] + rows.indptr[docs]
    entries = _Entries(docs, signs.marks, places, np.zeros(len(docs)))
    done: list[_Entries] = []
    while not done or len(entries.docs):
        stay, entries = _split_once(entries, rows, reach, enough)
        done.append(stay)
    return _as_signs(done, reach, docs=rows.shape[0])


def _split_once(
    entries: _Entries, rows: sparse.csr_matrix, reach: NDArray[np.float32], enough: float
) -> tuple[_Entries, _Entries]:
    """Return the entries that stay as they are, and those that take the place of the others."""
    holders = np.bincount(entries.lists)
    is_long = (holders[entries.lists] > SMALLEST) & (entries.places >= 0)
    longer, origin = _go_on(entries[is_long], rows, reach, enough)
    # A list costs the comparisons of all its pairs; its parts cost theirs, and to be made.
    sizes = np.bincount(longer.lists)
    cost = np.bincount(origin, (sizes[longer.lists] - 1) / 2 + ENTRY_COST, minlength=len(holders))
    saves = cost < holders * (holders - 1) / 2
    return entries[~(is_long & saves[entries.lists])], longer[saves[origin]]


def _go_on(
    entries: _Entries, rows: sparse.csr_matrix, reach: NDArray[np.float32], enough: float
) -> tuple[_Entries, NDArray[np.int64]]:
    """Return the entries for each word that can be the next common one, and from which list each comes."""
    fixed = entries.fixed + rows.data[entries.places].astype(np.float64) ** 2
    sizes = _count_next(entries.places, rows.indptr[entries.docs + 1], fixed, reach, enough)
    starts = np.cumsum(sizes) - sizes
    total = int(sizes.sum())
    places, lists = np.empty(total, dtype=np.int64), np.empty(total, dtype=np.int64)
    buckets = 1 << max(1, total - 1).bit_length()
    before = (entries.places, entries.lists, fixed >= enough, starts, sizes)
    _fill_next(*before, rows.indices, places, lists, buckets)
    origin = np.repeat(entries.lists, sizes)
    return _Entries(np.repeat(entries.docs, sizes), lists, places, np.repeat(fixed, sizes)), origin


@njit()
def _count_next(places, ends, fixed, reach, enough):  # type: ignore[no-untyped-def]
    counts = np.zeros(places.shape[0], dtype=np.int64)
    for entry in range(places.shape[0]):
        place = places[entry] + 1
        while place < ends[entry] and fixed[entry] + np.float64(reach[place]) ** 2 >= enough:
            place += 1
        counts[entry] = place - places[entry] - 1 + (fixed[entry] >= enough)
    return counts


@njit()
def _fill_next(  # type: ignore[no-untyped-def]
    parents, parent_lists, has_end, starts, sizes, words, places, lists, buckets
):
    for entry in range(parents.shape[0]):
        for step in range(sizes[entry]):
            place, word = parents[entry] + 1 + step, np.int64(-1)
            if has_end[entry] and step == sizes[entry] - 1:
                place = -1
            else:
                word = np.int64(words[place])
            places[starts[entry] + step] = place
            # Two lists in one bucket are compared with each other in vain, but nothing is missed.
            key = mixed(np.uint64(parent_lists[entry]) << np.uint64(32) ^ np.uint64(word + 1))
            lists[starts[entry] + step] = np.int64(key & np.uint64(buckets - 1))


def _as_signs(parts: list[_Entries], reach: NDArray[np.float32], *, docs: int) -> Signs:
    """Put the entries of all lists together, document by document."""
    kinds = np.cumsum([0] + [part.lists.max(initial=-1) + 1 for part in parts])
    assignments = np.concatenate([part.docs for part in parts])
    marks = np.concatenate([part.lists + start for part, start in zip(parts, kinds, strict=False)])
    places = np.concatenate([part.places for part in parts])
    rest = np.where(places >= 0, reach[places], 0.0).astype(np.float64)
    length = np.sqrt(np.concatenate([part.fixed for part in parts]) + rest**2).astype(np.float32)
    order = np.argsort(assignments, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(assignments, minlength=docs))])
    return Signs(indptr, marks[order], length[order], int(kinds[-1]))
