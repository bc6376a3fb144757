r"""Tokenizer and term counter compiled by numba.

Texts are scanned as UTF-8 bytes. A word is a maximal run of at least two characters that Python's `\w`
matches, as in the default token pattern. Each word is hashed while it is read, looked up in an
open-addressing table and compared byte by byte with the term found there, so the counts are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from snuh._numba import njit
from snuh.features.weighting import TermCounts

_HASH_START = np.uint64(14695981039346656037)  # FNV-1a, 64 bits
_HASH_FACTOR = np.uint64(1099511628211)
_HALF = np.uint64(32)
_LOW_HALF = np.uint64(0xFFFFFFFF)
_ONE = np.uint64(1)


class NumbaTermCounter:
    """Counts known terms in texts whose words follow the default token pattern."""

    def __init__(self, terms: Sequence[str], *, lowercase: bool) -> None:
        encoded = [term.encode("utf-8", "surrogatepass") for term in terms]
        self._pool = np.frombuffer(b"".join(encoded), dtype=np.uint8)
        self._starts = np.zeros(len(encoded) + 1, dtype=np.int64)
        np.cumsum([len(term) for term in encoded], out=self._starts[1:])
        slots = 1 << (4 * len(encoded)).bit_length()  # at most a quarter full: most lookups take one probe
        self._table = _build_table(self._pool, self._starts, slots)
        self._lowercase = lowercase
        self._folded = ascii_words(lowercase=lowercase)

    def count(self, texts: Sequence[str]) -> TermCounts:
        """Count the terms of each text; safe to call from several threads."""
        buffer, ends = join_texts(texts, lowercase=self._lowercase)
        # A word takes at least two bytes, and one more unless it ends its text.
        limit = (len(buffer) + len(texts)) // 3 + 1
        indptr = np.zeros(len(texts) + 1, dtype=np.int64)
        indices = np.empty(limit, dtype=np.int32)
        counts = np.empty(limit, dtype=np.int32)
        used = _count_terms(
            buffer, ends, self._folded, word_characters(), self._table, self._pool, self._starts,
            indptr, indices, counts,
        )  # fmt: skip
        return TermCounts(indptr, indices[:used].copy(), counts[:used].copy())


def join_texts(texts: Sequence[str], *, lowercase: bool) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the bytes of all texts, and where each text ends."""
    # The kernels lower-case ASCII themselves; other characters (ß, İ, final sigma) need Python.
    lowered = (text.lower() if lowercase and not text.isascii() else text for text in texts)
    encoded = [text.encode("utf-8", "surrogatepass") for text in lowered]
    ends = np.cumsum(np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded)))
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), ends


@cache
def word_characters() -> NDArray[np.bool_]:
    r"""Return for every code point whether Python's `\w` matches it."""
    characters = np.arange(0x110000, dtype=np.uint32).view("<U1")
    table: NDArray[np.bool_] = np.strings.isalnum(characters)
    table[ord("_")] = True
    return table


def ascii_words(*, lowercase: bool) -> NDArray[np.uint8]:
    """Return the folded value of each byte: 0 for ASCII outside words, itself beyond ASCII."""
    folded = np.arange(256, dtype=np.uint8)
    for code in range(128):
        character = chr(code)
        is_word = character.isalnum() or character == "_"
        folded[code] = ord(character.lower() if lowercase else character) if is_word else 0
    return folded


# Kernels are untyped: numba has no type stubs and takes their types from the signatures.
@njit("uint64[::1](Array(uint8, 1, 'C', readonly=True), int64[::1], int64)")
def _build_table(pool, starts, slots):  # type: ignore[no-untyped-def]
    """Return slots that hold (upper half of the hash, term number + 1), or 0 if free."""
    table = np.zeros(slots, dtype=np.uint64)
    mask = np.uint64(slots - 1)
    for term in range(len(starts) - 1):
        value = _HASH_START
        for i in range(starts[term], starts[term + 1]):
            value = (value ^ np.uint64(pool[i])) * _HASH_FACTOR
        tag = value >> _HALF
        slot = (value ^ tag) & mask
        while table[slot] != 0:
            slot = (slot + _ONE) & mask
        table[slot] = (tag << _HALF) | np.uint64(term + 1)
    return table


@njit()
def scan_word(buffer, i, end, folded, is_word):  # type: ignore[no-untyped-def]
    """Scan the word that starts at byte i, if any.

    Returns:
        Where it ends, the width of the character after it, its number of characters, and its hash.
    """
    characters = 0
    value = _HASH_START
    step = 0
    while i < end:
        byte = buffer[i]
        if byte < 128:
            fold = folded[byte]
            if fold == 0:
                step = 1
                break
            value = (value ^ np.uint64(fold)) * _HASH_FACTOR
            i += 1
        else:
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
            if not is_word[code]:
                step = width
                break
            for j in range(i, i + width):
                value = (value ^ np.uint64(buffer[j])) * _HASH_FACTOR
            i += width
        characters += 1
    return i, step, characters, value


@njit(
    "int64(Array(uint8, 1, 'C', readonly=True), int64[::1], uint8[::1], boolean[::1], uint64[::1],"
    " Array(uint8, 1, 'C', readonly=True), int64[::1], int64[::1], int32[::1], int32[::1])"
)
def _count_terms(  # type: ignore[no-untyped-def]
    buffer, ends, folded, is_word, table, pool, starts, indptr, indices, counts
):
    mask = np.uint64(len(table) - 1)
    text_counts = np.zeros(len(starts) - 1, dtype=np.int32)  # of the current text; 0 between texts
    used = 0
    i = 0
    for text in range(len(ends)):
        end = ends[text]
        row = used
        while i < end:
            start = i
            i, step, characters, value = scan_word(buffer, i, end, folded, is_word)
            length = i - start
            i += step
            if characters < 2:
                continue
            tag = value >> _HALF
            slot = (value ^ tag) & mask
            while table[slot] != 0:
                entry = table[slot]
                slot = (slot + _ONE) & mask
                if entry >> _HALF != tag:
                    continue
                term = np.int64(entry & _LOW_HALF) - 1
                first = starts[term]
                if starts[term + 1] - first != length:
                    continue
                same = 0
                while same < length and folded[buffer[start + same]] == pool[first + same]:
                    same += 1
                if same == length:
                    if text_counts[term] == 0:
                        indices[used] = term
                        used += 1
                    text_counts[term] += 1
                    break
        indices[row:used].sort()
        for k in range(row, used):
            counts[k] = text_counts[indices[k]]
            text_counts[indices[k]] = 0
        indptr[text + 1] = used
    return used
