"""BM25 scores of all rows for a query, from postings: for each term the rows that have it, and how often.

score(row) = sum over terms of  weight idf tf (k1 + 1) / (tf + k1 (1 - b + b length / mean length)), with
idf = log(1 + (N - df + 1/2) / (df + 1/2)), as in Lucene. Scores are exact for every row, not only for the
best ones, so that they can be combined with scores of codes and with any filter.

Terms are known by 64-bit hashes; among a million of them, two are alike with a probability of 3e-8.

A hybrid search ranks by the sum of two standardized scores, BM25 and the asymmetric score of the codes. From
each score its mean over all documents is subtracted, and it is divided by its standard deviation: so neither
needs a scale or a weight, and a document that has no word of the query can still be found by its code. Every
document is scored: there is no shortlist that could lose one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from snuh.index.kernels_numpy import KERNELS

K1, B = 1.2, 0.75
PLAIN_SECONDS = 2e-8  # that NumPy takes for each posting
PLAIN_SCORE_SECONDS = 3e-9  # that NumPy takes for each byte of a code, or each score
MAX_COUNT = 255  # term frequencies are capped here, to fit into a byte


@dataclass(frozen=True, eq=False, slots=True)
class Postings:
    """The rows of each term."""

    keys: NDArray[np.uint64]  # hashes of the terms, ascending
    indptr: NDArray[np.int64]  # (terms + 1,)
    rows: NDArray[np.int32]  # of each term, ascending
    counts: NDArray[np.uint8]  # how often the row has the term
    lengths: NDArray[np.int32]  # (rows,): number of words of each row that are no stop words

    def find(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the position of each key, -1 if there is no such term."""
        if not len(self.keys):
            return np.full(len(keys), -1, dtype=np.int64)
        positions = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[positions] == keys, positions, -1)

    def rows_of(self, key: int) -> NDArray[np.int32]:
        """Return the rows that have a term, ascending."""
        (position,) = self.find(np.array([key], dtype=np.uint64)).tolist()
        return (
            self.rows[self.indptr[position] : self.indptr[position + 1]] if position >= 0 else self.rows[:0]
        )


def key_of(term: str) -> int:
    """Return the hash of a term."""
    return int.from_bytes(blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def build_postings(
    keys: NDArray[np.uint64],
    indptr: NDArray[np.int64],
    terms: NDArray[np.int32],
    counts: NDArray[np.int32],
    lengths: NDArray[np.int32],
) -> Postings:
    """Return the postings of rows, given as a CSR matrix of counts whose columns have these keys."""
    order = np.argsort(keys, kind="stable")
    columns = np.empty(len(keys), dtype=np.int32)
    columns[order] = np.arange(len(keys), dtype=np.int32)
    rows = np.repeat(np.arange(len(lengths), dtype=np.int32), np.diff(indptr))
    return _transpose(keys[order], columns[terms], rows, np.minimum(counts, MAX_COUNT), lengths)


def merge_postings(parts: Iterable[tuple[Postings, NDArray[np.int32]]], rows: int) -> Postings:
    """Merge postings; each part comes with the new number of each of its rows, -1 for those to drop."""
    listed = list(parts)
    keys = np.unique(np.concatenate([np.zeros(0, np.uint64), *(part.keys for part, _ in listed)]))
    lengths = np.zeros(rows, dtype=np.int32)
    all_terms, all_rows, all_counts = [], [], []
    for part, numbers in listed:
        kept = numbers >= 0
        lengths[numbers[kept]] = part.lengths[kept]
        terms = np.repeat(np.searchsorted(keys, part.keys).astype(np.int32), np.diff(part.indptr))
        new_rows = numbers[part.rows]
        live = slice(None) if kept.all() else new_rows >= 0
        all_terms.append(terms[live])
        all_rows.append(new_rows[live])
        all_counts.append(part.counts[live])
    empty = np.zeros(0, dtype=np.int32)
    return _transpose(
        keys,
        np.concatenate([empty, *all_terms]),
        np.concatenate([empty, *all_rows]),
        np.concatenate([empty.astype(np.uint8), *all_counts]),
        lengths,
    )


def _transpose(
    keys: NDArray[np.uint64],
    terms: NDArray[np.int32],
    rows: NDArray[np.int32],
    counts: NDArray[np.integer],
    lengths: NDArray[np.int32],
) -> Postings:
    from scipy import sparse

    matrix = sparse.coo_matrix(
        (counts.astype(np.uint8), (terms, rows)), shape=(len(keys), max(1, len(lengths)))
    ).tocsr()
    matrix.sort_indices()
    used = np.diff(matrix.indptr) > 0
    indptr = np.concatenate([[0], np.cumsum(np.diff(matrix.indptr)[used])]).astype(np.int64)
    return Postings(keys[used], indptr, matrix.indices.astype(np.int32), matrix.data, lengths)


@dataclass(frozen=True, eq=False, slots=True)
class Part:
    """Postings of which some rows may be dead."""

    postings: Postings
    live: NDArray[np.bool_] | None = None  # None for all


class _Query(NamedTuple):
    """The distinct terms of a query, and where each part has them."""

    keys: NDArray[np.uint64]
    weights: NDArray[np.float64]  # of each term in the query
    idf: NDArray[np.float64]
    positions: list[NDArray[np.int64]]  # for each part, see `Postings.find`
    mean_length: float  # of documents


def _look_up(parts: Sequence[Part], weights: Mapping[int, float]) -> _Query:
    wanted = np.array(sorted(weights), dtype=np.uint64)
    documents, length = 0, 0
    for part in parts:
        lengths = part.postings.lengths if part.live is None else part.postings.lengths[part.live]
        documents += len(lengths)
        length += int(lengths.sum(dtype=np.int64))
    positions = [part.postings.find(wanted) for part in parts]
    frequencies = np.zeros(len(wanted), dtype=np.int64)
    for part, found in zip(parts, positions, strict=True):
        indptr = part.postings.indptr
        for term, position in enumerate(found.tolist()):
            if position >= 0:
                rows = part.postings.rows[indptr[position] : indptr[position + 1]]
                frequencies[term] += len(rows) if part.live is None else int(part.live[rows].sum())
    idf = inverse_frequencies(frequencies, documents)
    listed = np.array([weights[key] for key in wanted.tolist()], dtype=np.float64)
    return _Query(wanted, listed, idf, positions, max(1.0, length / max(1, documents)))


def inverse_frequencies(frequencies: NDArray[np.int64], documents: int) -> NDArray[np.float64]:
    """Return the idf of terms, given how many of the documents have each."""
    idf: NDArray[np.float64] = np.log1p((documents - frequencies + 0.5) / (frequencies + 0.5))
    return idf


def telling_terms(parts: Sequence[Part], weights: Mapping[int, float], *, limit: int) -> dict[int, float]:
    """Return the terms with the largest weight times idf, by their keys."""
    query = _look_up(parts, weights)
    return most_telling(query.keys, query.weights * query.idf, limit=limit)


def most_telling(keys: NDArray[np.uint64], weights: NDArray[np.float64], *, limit: int) -> dict[int, float]:
    """Return the largest weights by their keys, which are ascending."""
    best = np.argsort(-weights, kind="stable")[:limit]
    return dict(zip(keys[best].tolist(), weights[best].tolist(), strict=True))


def bm25_scores(parts: Sequence[Part], weights: Mapping[int, float]) -> list[NDArray[np.float32]]:
    """Return the scores of all rows of each part; dead rows have some, too.

    Args:
        parts: the rows, whose statistics are those of all together.
        weights: of the query's terms, by their keys; in a plain query, how often it has each.
    """
    query = _look_up(parts, weights)
    factors = (query.weights * query.idf * (K1 + 1.0)).astype(np.float32)
    results = []
    for part, found in zip(parts, query.positions, strict=True):
        postings = part.postings
        scores = np.zeros(len(postings.lengths), dtype=np.float32)
        known = found >= 0
        terms = found[known]
        n_postings = int((postings.indptr[terms + 1] - postings.indptr[terms]).sum())
        KERNELS(PLAIN_SECONDS * n_postings).add_scores(
            terms, factors[known], postings.indptr, postings.rows, postings.counts, postings.lengths,
            np.float32(K1 * (1.0 - B)), np.float32(K1 * B / query.mean_length), scores,
        )  # fmt: skip
        results.append(scores)
    return results


# The sum of BM25 and the scores of codes

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
    KERNELS(PLAIN_SCORE_SECONDS * codes.size).sum_tables(codes, np.ascontiguousarray(table), scores)
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
    size = KERNELS(PLAIN_SCORE_SECONDS * len(words)).collect(
        words, codes, np.float32(word_mean), np.float32(word_inverse), np.float32(code_mean),
        np.float32(code_inverse), mask, k, rows, sums,
    )  # fmt: skip
    order = np.lexsort((rows[:size], -sums[:size]))[:k]
    return rows[order], sums[order]
