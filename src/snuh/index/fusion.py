"""The ranking of a hybrid search: the sum of two standardized scores, BM25 and the asymmetric score of codes.

From each score its mean over all documents is subtracted, and it is divided by its standard deviation: so
neither needs a scale or a weight, and a document that has no word of the query can still be found by its
code.

The ranking is exact, although not every code is looked at. The score of a code is linear in its bits, so that
its mean and deviation over all documents follow from the means and covariances of the bits. Rows that have a
word of the query are scored one by one. All others share one score of their words; if that and the highest
score that any code can have do not reach the k-th best sum, none of them is among the best. Else all are
scored.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from snuh.index.bm25 import Part, WordScores
from snuh.index.kernels_numpy import KERNELS

PLAIN_SCORE_SECONDS = 3e-9  # that NumPy takes for each byte of a code
BLOCK_ROWS = 1 << 16
SLACK = 1e-3  # of a standardized score, above its error of rounding

Codes = NDArray[np.uint8]
Mask = NDArray[np.bool_]


class Standard(NamedTuple):
    """Mean and inverse standard deviation of a score; 0 if all documents have the same."""

    mean: float
    inverse: float

    @classmethod
    def of(cls, count: int, total: float, squares: float) -> Standard:
        """Return mean and inverse deviation, given the number, sum and sum of squares of the scores."""
        if not count:
            return cls(0.0, 0.0)
        mean = total / count
        variance = squares / count - mean * mean
        return cls(mean, 0.0 if variance <= 1e-12 else variance**-0.5)

    def apply(self, scores: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return standardized scores."""
        return (scores.astype(np.float64) - self.mean) * self.inverse


def standardize_words(parts: list[tuple[Part, WordScores]]) -> Standard:
    """Return the mean and deviation of the word scores of all live rows."""
    total, squares = 0.0, 0.0
    for part, (rows, scores) in parts:
        live = scores if part.live is None else scores[part.live[rows]]
        total += float(live.sum(dtype=np.float64))
        squares += float(np.dot(live, live))
    return Standard.of(sum(part.documents for part, _ in parts), total, squares)


@dataclass(frozen=True, eq=False, slots=True)
class CodedRows:
    """The codes of the rows of a part, and which live rows have one; None for all."""

    codes: Codes  # (rows, bytes)
    has_code: Mask | None


@dataclass(frozen=True, eq=False, slots=True)
class BitCounts:
    """Sums over codes of their bits as -1 and 1, and of the products of any two bits."""

    count: int
    sums: NDArray[np.float64]  # (bits,)
    products: NDArray[np.float64]  # (bits, bits)

    @classmethod
    def of(cls, rows: CodedRows) -> BitCounts:
        """Count the bits of rows."""
        bits = 8 * rows.codes.shape[1]
        count, sums, products = 0, np.zeros(bits), np.zeros((bits, bits))
        for start in range(0, len(rows.codes), BLOCK_ROWS):
            block = rows.codes[start : start + BLOCK_ROWS]
            if rows.has_code is not None:
                block = block[rows.has_code[start : start + BLOCK_ROWS]]
            signs = np.unpackbits(block, axis=1).astype(np.float32) * 2.0 - 1.0
            count += len(signs)
            sums += signs.sum(axis=0, dtype=np.float64)
            products += signs.T @ signs
        return cls(count, sums, products)

    def __add__(self, other: BitCounts) -> BitCounts:
        return BitCounts(self.count + other.count, self.sums + other.sums, self.products + other.products)

    def __sub__(self, other: BitCounts) -> BitCounts:
        return BitCounts(self.count - other.count, self.sums - other.sums, self.products - other.products)

    def updated(self, before: CodedRows, after: CodedRows) -> BitCounts:
        """Return the counts of as many rows of which most are the same."""
        changed = (before.codes != after.codes).any(axis=1)
        if before.has_code is not None or after.has_code is not None:
            changed |= _filled(before) != _filled(after)
        if 2 * np.count_nonzero(changed) > len(changed):
            return BitCounts.of(after)
        old, new = (
            CodedRows(rows.codes[changed], None if rows.has_code is None else rows.has_code[changed])
            for rows in (before, after)
        )
        return self - BitCounts.of(old) + BitCounts.of(new)

    def standardize(self, margins: NDArray[np.floating]) -> Standard:
        """Return the mean and deviation of the scores of all codes."""
        finite = _finite(margins)
        return Standard.of(self.count, float(finite @ self.sums), float(finite @ self.products @ finite))


def _filled(rows: CodedRows) -> Mask:
    return np.ones(len(rows.codes), dtype=np.bool_) if rows.has_code is None else rows.has_code


def _finite(margins: NDArray[np.floating]) -> NDArray[np.float64]:
    return np.where(np.isfinite(margins), margins, 0.0).astype(np.float64)


def score_table(margins: NDArray[np.floating] | None, width: int) -> NDArray[np.float32]:
    """Return what each byte of a code adds to its score, by its value; zeros without margins.

    The score is the sum of the margins, signed by the bits of the code: higher is nearer. Up to a constant,
    minus it is what the differing bits cost: `2 * sum of |margin| over differing bits`.
    """
    if margins is None:
        return np.zeros((width, 256), dtype=np.float32)
    return np.ascontiguousarray((_signs_of_bytes() @ _finite(margins).reshape(-1, 8).T).T.astype(np.float32))


@cache
def _signs_of_bytes() -> NDArray[np.float64]:
    """Return the bits of every byte as -1 and 1, (256, 8)."""
    return np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float64) * 2.0 - 1.0


def code_scores(codes: Codes, table: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the scores of codes."""
    scores = np.zeros(len(codes), dtype=np.float32)
    for column, values in zip(codes.T, table, strict=True):
        scores += values[column]
    return scores


class Best(NamedTuple):
    """The best rows, in descending order of the sum of their scores, ties by row."""

    rows: NDArray[np.int64]
    words: NDArray[np.float32]  # BM25 scores
    sums: NDArray[np.float32]


def best_rows(
    words: WordScores,
    coded: CodedRows | None,
    table: NDArray[np.float32],
    scales: tuple[Standard, Standard],
    *,
    k: int,
    allowed: Mask | None = None,
    floor: float = -np.inf,
) -> Best:
    """Return up to k allowed rows with a word of the query, or a code, with the highest sums.

    Args:
        words: the scores of the words of a part.
        coded: the codes of all its rows; None to rank by words alone. A row without one counts as a mean one.
        table: see `score_table`.
        scales: of the scores of words and codes.
        k: maximum number of rows.
        allowed: which rows may be among them; all by default.
        floor: rows with a lower sum are not needed.
    """
    if coded is None:
        coded = CodedRows(np.zeros((0, 0), dtype=np.uint8), None)
        return _collect(words, coded, table, scales, k=k, allowed=allowed, highest=0.0, floor=floor)
    word_scale, code_scale = scales
    highest = (float(table.max(axis=1).sum()) - code_scale.mean) * code_scale.inverse + SLACK
    best = _collect(words, coded, table, scales, k=k, allowed=allowed, highest=highest, floor=floor)
    lowest = max(floor, float(best.sums[-1]) if len(best.sums) == k > 0 else -np.inf)
    without_words = -word_scale.mean * word_scale.inverse
    if without_words + highest < lowest:
        return best
    n_rows = len(coded.codes)
    every = WordScores(np.arange(n_rows, dtype=np.int32), words.dense(n_rows))
    return _collect(every, coded, table, scales, k=k, allowed=allowed, highest=highest, floor=floor)


def _collect(
    words: WordScores,
    coded: CodedRows,
    table: NDArray[np.float32],
    scales: tuple[Standard, Standard],
    *,
    k: int,
    allowed: Mask | None,
    highest: float,
    floor: float,
) -> Best:
    (word_mean, word_inverse), (code_mean, code_inverse) = scales
    k = min(k, len(words.rows))
    found, sums = np.empty(k, dtype=np.int64), np.empty(k, dtype=np.float32)
    every = np.ones(0, dtype=np.bool_)
    size = KERNELS(PLAIN_SCORE_SECONDS * len(words.rows) * (1 + len(table))).collect(
        words.rows, words.scores, coded.codes, table, every if coded.has_code is None else coded.has_code,
        every if allowed is None else allowed, np.float32(word_mean), np.float32(word_inverse),
        np.float32(code_mean), np.float32(code_inverse), np.float32(highest), np.float32(floor), found, sums,
    )  # fmt: skip
    found, sums = found[:size], sums[:size]
    rows = words.rows[found].astype(np.int64)
    order = np.lexsort((rows, -sums))
    return Best(rows[order], words.scores[found[order]], sums[order])
