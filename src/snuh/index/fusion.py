"""Ranking by the sum of two standardized scores: BM25 of the words, and the asymmetric score of the codes.

Each score is divided by its standard deviation over all documents after its mean was subtracted, so neither
needs a scale or a weight, and a document that has no word of the query can still be found by its code. Every
document is scored: there is no shortlist that could lose one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from snuh.index.kernels_numpy import KERNELS

PLAIN_SECONDS = 3e-9  # that NumPy takes for each byte of a code, or each score

Scores = NDArray[np.float32]


class Standard(NamedTuple):
    """Mean and inverse standard deviation of a score; 0 if all documents have the same."""

    mean: float
    inverse: float


def standardize(parts: list[tuple[Scores, NDArray[np.bool_] | None]]) -> Standard:
    """Return the mean and deviation of the scores of all live rows."""
    chosen = [scores if live is None else scores[live] for scores, live in parts]
    count = sum(map(len, chosen))
    if not count:
        return Standard(0.0, 0.0)
    mean = sum(float(scores.sum(dtype=np.float64)) for scores in chosen) / count
    squares = sum(float(np.dot(scores, scores)) for scores in chosen) / count
    variance = squares - mean * mean
    return Standard(mean, 0.0 if variance <= 1e-12 else variance**-0.5)


def code_scores(codes: NDArray[np.uint8], margins: NDArray[np.floating]) -> Scores:
    """Return the sum of the query's margins over the bits of each code, signed by the bit: higher is nearer.

    Up to a constant, minus it is what the differing bits cost: `2 * sum of |margin| over differing bits`.
    """
    finite = np.where(np.isfinite(margins), margins, 0.0)
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float64) * 2.0 - 1.0
    table = (bits @ finite.reshape(-1, 8).T).T.astype(np.float32)  # (bytes, 256)
    scores = np.empty(len(codes), dtype=np.float32)
    KERNELS(PLAIN_SECONDS * codes.size).sum_tables(codes, np.ascontiguousarray(table), scores)
    return scores


def top_rows(
    words: Scores,
    codes: Scores,
    scales: tuple[Standard, Standard],
    *,
    k: int,
    allowed: NDArray[np.bool_] | None,
) -> tuple[NDArray[np.int64], Scores]:
    """Return up to k allowed rows with the highest sums, in descending order, ties by row."""
    (word_mean, word_inverse), (code_mean, code_inverse) = scales
    k = min(k, len(words))
    rows, sums = np.empty(2 * k, dtype=np.int64), np.empty(2 * k, dtype=np.float32)
    mask = np.ones(0, dtype=np.bool_) if allowed is None else allowed
    size = KERNELS(PLAIN_SECONDS * len(words)).collect(
        words, codes, np.float32(word_mean), np.float32(word_inverse), np.float32(code_mean),
        np.float32(code_inverse), mask, k, rows, sums,
    )  # fmt: skip
    order = np.lexsort((rows[:size], -sums[:size]))[:k]
    return rows[order], sums[order]
