"""The analyzer in bulk: segmentation and counting compiled by numba.

`snuh.features.tokenizer_python` has the same class and function without numba, for a few texts.

`WordInterner` numbers the distinct words of texts, as `snuh.features.analyzer.segment` finds them. Texts are
scanned as UTF-8 bytes; each word is hashed, looked up in an open-addressing table and compared byte by byte
with the word found there. What a word means is computed by the analyzer, once per distinct word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from snuh._numba import njit
from snuh.features.analyzer import (
    APOSTROPHE,
    DIGIT,
    HASH,
    HYPHEN,
    IDEOGRAPH,
    INVISIBLE,
    LETTER,
    MARK,
    MAX_MARKS,
    MAX_WORD,
    OTHER,
    PLUS,
    UNDERSCORE,
    Analyzer,
    character_kinds,
)
from snuh.features.vocabulary import WordCounts
from snuh.features.weighting import TermCounts, WordNumbers, word_columns

_HASH_START = np.uint64(14695981039346656037)  # FNV-1a, 64 bits
_HASH_FACTOR = np.uint64(1099511628211)
_HALF = np.uint64(32)
_LOW_HALF = np.uint64(0xFFFFFFFF)
_ONE = np.uint64(1)


class WordInterner:
    """Numbers distinct words in the order in which they are first seen; not safe for several threads."""

    def __init__(self) -> None:
        self._pool = np.empty(1 << 16, dtype=np.uint8)
        self._starts = np.zeros((1 << 12) + 1, dtype=np.int64)
        self._slots = np.zeros(1 << 14, dtype=np.uint64)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def number(self, texts: Sequence[str]) -> WordNumbers:
        """Return the number of every word of the texts, adding words that are new."""
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        buffer = np.frombuffer(b"".join(encoded), dtype=np.uint8)
        ends = np.cumsum(np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded)))
        indptr = np.zeros(len(texts) + 1, dtype=np.int64)
        # A word takes a byte and one more before the next; a pair of ideographs three.
        words = np.empty((len(buffer) + len(texts)) // 2 + 1, dtype=np.int32)
        text = 0
        while True:
            text, self._size = _number_words(
                buffer, ends, text, character_kinds(), self._slots, self._pool, self._starts, self._size,
                indptr, words,
            )  # fmt: skip
            if text == len(texts):
                return WordNumbers(indptr, words[: indptr[-1]].copy())
            self._grow(int(ends[text] - (ends[text - 1] if text else 0)))

    def words(self, start: int = 0) -> list[str]:
        """Return the words from a number on."""
        pool, starts = self._pool.tobytes(), self._starts[start : self._size + 1].tolist()
        return [pool[first:last].decode("utf-8", "surrogatepass") for first, last in pairwise(starts)]

    def _grow(self, n_bytes: int) -> None:
        """Make room for twice as many words, or for all words of a text with this number of bytes."""
        used = self._starts[self._size]
        pool = np.empty(max(2 * len(self._pool), used + 2 * n_bytes), dtype=np.uint8)
        pool[:used] = self._pool[:used]
        room = max(2 * len(self._starts), self._size + n_bytes // 2 + 2)
        starts = np.zeros(room, dtype=np.int64)
        starts[: self._size + 1] = self._starts[: self._size + 1]
        self._pool, self._starts = pool, starts
        # At most half full: most lookups take one probe, and the table stays small enough for the cache.
        self._slots = _fill_slots(pool, starts, self._size, 1 << (2 * room - 1).bit_length())


class CorpusWords:
    """The distinct words of each text of a corpus, collected batch by batch."""

    def __init__(self) -> None:
        self._table = WordInterner()
        self._parts: list[TermCounts] = []

    def add(self, texts: Sequence[str]) -> None:
        """Add the next texts."""
        numbers = self._table.number(texts)
        itself = np.arange(len(self._table), dtype=np.int32)
        self._parts.append(count_columns(numbers, np.arange(len(itself) + 1, dtype=np.int64), itself))

    def counts(self) -> Counter[str]:
        """Return how often each word occurs, case folded."""
        totals = np.zeros(len(self._table), dtype=np.int64)
        for part in self._parts:
            np.add.at(totals, part.indices, part.counts)
        counts: Counter[str] = Counter()
        expanded = Analyzer(stemming=False).expand_all(self._table.words())
        for terms, total in zip(expanded, totals.tolist(), strict=True):
            for term in terms:
                counts[term] += total
        return counts

    def term_counts(self, analyzer: Analyzer) -> WordCounts:
        """Return the frequencies of the terms that an analyzer makes of the words."""
        numbers: dict[str, int] = {}

        def column(term: str) -> int:
            return numbers.setdefault(term, len(numbers))

        indptr, columns = word_columns(analyzer.expand_all(self._table.words()), column)
        totals = np.zeros(len(numbers), dtype=np.int64)
        in_documents = np.zeros(len(numbers), dtype=np.int64)
        counts = WordCounts()
        for part in self._parts:
            _add_frequencies(part.indptr, part.indices, part.counts, indptr, columns, totals, in_documents)
            counts.documents += len(part.indptr) - 1
        counts.totals.update(dict(zip(numbers, totals.tolist(), strict=True)))
        counts.in_documents.update(dict(zip(numbers, in_documents.tolist(), strict=True)))
        return counts


def count_columns(numbers: WordNumbers, indptr: NDArray[np.int64], columns: NDArray[np.int32]) -> TermCounts:
    """Count the columns of the words of each text."""
    size = int(columns.max(initial=-1)) + 1
    limit = int(np.diff(indptr)[numbers.words].sum()) if len(numbers.words) else 0
    result = np.zeros(len(numbers.indptr), dtype=np.int64)
    indices, counts = np.empty(limit, dtype=np.int32), np.empty(limit, dtype=np.int32)
    used = _count_columns(numbers.indptr, numbers.words, indptr, columns, size, result, indices, counts)
    return TermCounts(result, indices[:used].copy(), counts[:used].copy())


# Kernels are untyped: numba has no type stubs and takes their types from the signatures.
@njit("int64(int64[::1], int32[::1], int64[::1], int32[::1], int64, int64[::1], int32[::1], int32[::1])")
def _count_columns(text_ptr, words, word_ptr, columns, size, indptr, indices, counts):  # type: ignore[no-untyped-def]
    text_counts = np.zeros(size, dtype=np.int32)  # of the current text; 0 between texts
    used = 0
    for text in range(len(text_ptr) - 1):
        row = used
        for k in range(text_ptr[text], text_ptr[text + 1]):
            word = words[k]
            for j in range(word_ptr[word], word_ptr[word + 1]):
                column = columns[j]
                if text_counts[column] == 0:
                    indices[used] = column
                    used += 1
                text_counts[column] += 1
        indices[row:used].sort()
        for k in range(row, used):
            counts[k] = text_counts[indices[k]]
            text_counts[indices[k]] = 0
        indptr[text + 1] = used
    return used


@njit("void(int64[::1], int32[::1], int32[::1], int64[::1], int32[::1], int64[::1], int64[::1])")
def _add_frequencies(  # type: ignore[no-untyped-def]
    text_ptr, words, counts, word_ptr, columns, totals, in_documents
):
    last = np.full(len(totals), -1, dtype=np.int64)  # the last text that had the term
    for text in range(len(text_ptr) - 1):
        for k in range(text_ptr[text], text_ptr[text + 1]):
            for j in range(word_ptr[words[k]], word_ptr[words[k] + 1]):
                column = columns[j]
                totals[column] += counts[k]
                if last[column] != text:
                    last[column] = text
                    in_documents[column] += 1


@njit("uint64[::1](uint8[::1], int64[::1], int64, int64)")
def _fill_slots(pool, starts, size, slots):  # type: ignore[no-untyped-def]
    """Return slots that hold (upper half of the hash, word number + 1), or 0 if free."""
    table = np.zeros(slots, dtype=np.uint64)
    mask = np.uint64(slots - 1)
    for word in range(size):
        value = _HASH_START
        for i in range(starts[word], starts[word + 1]):
            value = (value ^ np.uint64(pool[i])) * _HASH_FACTOR
        tag = value >> _HALF
        slot = (value ^ tag) & mask
        while table[slot] != 0:
            slot = (slot + _ONE) & mask
        table[slot] = (tag << _HALF) | np.uint64(word + 1)
    return table


@njit()
def _decode(buffer, i, end, kinds):  # type: ignore[no-untyped-def]
    """Return the kind and the width of the character at byte i; 0 and 1 at the end."""
    if i >= end:
        return 0, 1
    byte = buffer[i]
    if byte < 128:
        return np.int64(kinds[byte]), 1
    if byte < 0xE0:
        width = 2
        code = np.uint32(byte & 0x1F)
    elif byte < 0xF0:
        width = 3
        code = np.uint32(byte & 0x0F)
    else:
        width = 4
        code = np.uint32(byte & 0x07)
    for j in range(i + 1, i + width):
        code = np.uint32((code << np.uint32(6)) | np.uint32(buffer[j] & 0x3F))
    return np.int64(kinds[code]), width


@njit()
def _end_of_word(buffer, i, end, kinds, kind, width):  # type: ignore[no-untyped-def]
    """Return the end of the word that starts at byte i with a letter or digit."""
    i += width
    if kind == LETTER:  # the hyphen of e-mail
        next_kind, width = _decode(buffer, i, end, kinds)
        if next_kind == HYPHEN:
            first, first_width = _decode(buffer, i + width, end, kinds)
            second, _ = _decode(buffer, i + width + first_width, end, kinds)
            if first == LETTER and second == LETTER:
                i += width + first_width
    characters = 1
    while characters < MAX_WORD:
        kind, width = _decode(buffer, i, end, kinds)
        if kind in (APOSTROPHE, UNDERSCORE):
            next_kind, _ = _decode(buffer, i + width, end, kinds)
            if next_kind != LETTER and next_kind != DIGIT:
                break
        elif kind != LETTER and kind != DIGIT and kind != MARK and kind != INVISIBLE:
            break
        i += width
        characters += 1
    after, _ = _decode(buffer, i, end, kinds)  # C++, C#
    suffix = 0
    if after == HASH:
        suffix = 1
    elif after == PLUS:
        second, _ = _decode(buffer, i + 1, end, kinds)
        if second == PLUS:
            suffix = 2
    if suffix:
        kind, _ = _decode(buffer, i + suffix, end, kinds)
        if kind in (OTHER, IDEOGRAPH, APOSTROPHE, HYPHEN):
            i += suffix
    return i


@njit()
def _end_of_cluster(buffer, i, end, kinds, width):  # type: ignore[no-untyped-def]
    """Return the end of the ideograph at byte i with the marks after it."""
    i += width
    for _ in range(MAX_MARKS):
        kind, width = _decode(buffer, i, end, kinds)
        if kind != MARK and kind != INVISIBLE:
            break
        i += width
    return i


@njit()
def _number_of(buffer, first, last, slots, pool, starts, size):  # type: ignore[no-untyped-def]
    """Return the number of a word, `size` if it was added, -1 if there is no room for it."""
    value = _HASH_START
    for i in range(first, last):
        value = (value ^ np.uint64(buffer[i])) * _HASH_FACTOR
    return _look_up(buffer, first, last, value, slots, pool, starts, size)


@njit()
def _look_up(buffer, first, last, value, slots, pool, starts, size):  # type: ignore[no-untyped-def]
    mask = np.uint64(len(slots) - 1)
    tag = value >> _HALF
    slot = (value ^ tag) & mask
    length = last - first
    while slots[slot] != 0:
        entry = slots[slot]
        slot = (slot + _ONE) & mask
        if entry >> _HALF != tag:
            continue
        word = np.int64(entry & _LOW_HALF) - 1
        start = starts[word]
        if starts[word + 1] - start != length:
            continue
        same = 0
        while same < length and buffer[first + same] == pool[start + same]:
            same += 1
        if same == length:
            return word
    start = starts[size]
    if size + 2 > len(starts) or start + length > len(pool):
        return -1
    for i in range(length):
        pool[start + i] = buffer[first + i]
    starts[size + 1] = start + length
    slots[slot] = (tag << _HALF) | np.uint64(size + 1)
    return size


@njit(
    "UniTuple(int64, 2)(Array(uint8, 1, 'C', readonly=True), int64[::1], int64, uint8[::1], uint64[::1],"
    " uint8[::1], int64[::1], int64, int64[::1], int32[::1])"
)
def _number_words(  # type: ignore[no-untyped-def]
    buffer, ends, text, kinds, slots, pool, starts, size, indptr, words
):
    """Number the words from a text on; return the text that the table has no room for, and the size."""
    is_alnum = np.zeros(128, dtype=np.bool_)
    for code in range(128):
        is_alnum[code] = kinds[code] == LETTER or kinds[code] == DIGIT
    while text < len(ends):
        end = ends[text]
        i = ends[text - 1] if text > 0 else 0
        used = indptr[text]
        while i < end:
            # Most words are letters and digits of ASCII between spaces: they are hashed while they are read.
            last = i
            value = _HASH_START
            limit = min(end, i + MAX_WORD + 1)  # a run of millions of letters is read once, not once a word
            while last < limit and buffer[last] < 128 and is_alnum[buffer[last]]:
                value = (value ^ np.uint64(buffer[last])) * _HASH_FACTOR
                last += 1
            if i < last <= i + MAX_WORD and (
                last == end or (buffer[last] < 128 and kinds[buffer[last]] == OTHER)
            ):
                word = _look_up(buffer, i, last, value, slots, pool, starts, size)
                if word < 0:
                    return text, size
                size = max(size, word + 1)
                words[used] = word
                used += 1
                i = last + 1
                continue
            kind, width = _decode(buffer, i, end, kinds)
            if kind in (LETTER, DIGIT):
                last = _end_of_word(buffer, i, end, kinds, kind, width)
                word = _number_of(buffer, i, last, slots, pool, starts, size)
                i = last
            elif kind == IDEOGRAPH:
                last = _end_of_cluster(buffer, i, end, kinds, width)
                kind, width = _decode(buffer, last, end, kinds)
                alone = True
                word = 0
                while kind == IDEOGRAPH:
                    alone = False
                    after = _end_of_cluster(buffer, last, end, kinds, width)
                    word = _number_of(buffer, i, after, slots, pool, starts, size)
                    if word < 0:
                        break
                    i = last
                    last = after
                    kind, width = _decode(buffer, last, end, kinds)
                    if kind == IDEOGRAPH:
                        size = max(size, word + 1)
                        words[used] = word
                        used += 1
                if alone:
                    word = _number_of(buffer, i, last, slots, pool, starts, size)
                i = last
            else:
                i += width
                continue
            if word < 0:
                return text, size
            size = max(size, word + 1)
            words[used] = word
            used += 1
        indptr[text + 1] = used
        text += 1
    return text, size
