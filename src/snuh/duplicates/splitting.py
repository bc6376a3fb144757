"""Signs of several words, where single words are held by too many documents.

A word that many documents have says little, and comparing all that have it costs the square of their number.
So its list is split by the next word that two documents have in common. Let c1 < ... < cn be the first common
words of two rows, in the order of the columns, and S the words c1 ... cn together with all from the next
common one on. Everything in common lies in S, so the cosine is at most the length of either row within S: a
tuple of words whose S is too short is no sign. Rows with nothing in common after cn share the sign that says
so. Two rows of enough cosine therefore share a sign after each split, as they did before it.

A list is split only where that saves work, so the tuples become longer as the documents become more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from snuh.compiling import compiled
from snuh.duplicates.copies import mixed
from snuh.duplicates.signs import SLACK, Signs

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


@compiled()
def _count_next(places, ends, fixed, reach, enough):  # type: ignore[no-untyped-def]
    counts = np.zeros(places.shape[0], dtype=np.int64)
    for entry in range(places.shape[0]):
        place = places[entry] + 1
        while place < ends[entry] and fixed[entry] + np.float64(reach[place]) ** 2 >= enough:
            place += 1
        counts[entry] = place - places[entry] - 1 + (fixed[entry] >= enough)
    return counts


@compiled()
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
    owners = np.concatenate([part.docs for part in parts])
    marks = np.concatenate([part.lists + start for part, start in zip(parts, kinds, strict=False)])
    places = np.concatenate([part.places for part in parts])
    rest = np.where(places >= 0, reach[places], 0.0).astype(np.float64)
    length = np.sqrt(np.concatenate([part.fixed for part in parts]) + rest**2).astype(np.float32)
    order = np.argsort(owners, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=docs))])
    return Signs(indptr, marks[order], length[order], int(kinds[-1]))
