"""Ranking by words and codes, from the postings of a query's terms: the same for every backend.

A backend keeps postings and codes in its own way. It hands over two functions: `telling` weighs terms by how
few documents have them, and `read` returns all documents, with the postings of some terms at least. So a
query has the same terms and scores everywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from snuh.collection.backend import RankedMatch, Ranking, WordQuery
from snuh.features.analyzer import Analyzer, segment
from snuh.features.weighting import TermColumns
from snuh.index.bm25 import (
    Part,
    Postings,
    bm25_scores,
    build_postings,
    key_of,
    merge_postings,
)
from snuh.index.fusion import (
    BitCounts,
    CodedRows,
    Standard,
    best_rows,
    code_scores,
    score_table,
    standardize_words,
)

STOP = "\0"  # before the term of a stop word
MAX_TELLING = 30  # words of a document that are compared with those of others


@dataclass(frozen=True, eq=False, slots=True)
class PostingRows:
    """Postings with the seqs of their rows, ascending."""

    seqs: NDArray[np.int64]
    postings: Postings

    def equals(self, other: PostingRows) -> bool:
        """Tell whether both have the same documents and words."""
        pairs = [(self.seqs, other.seqs)]
        pairs += [
            (getattr(self.postings, name), getattr(other.postings, name)) for name in Postings.__slots__
        ]
        return all(np.array_equal(left, right) for left, right in pairs)


def empty_rows() -> PostingRows:
    """Return no rows."""
    integers = np.zeros(0, dtype=np.int32)
    postings = Postings(
        np.zeros(0, np.uint64), np.zeros(1, np.int64), integers, np.zeros(0, np.uint8), integers
    )
    return PostingRows(np.zeros(0, dtype=np.int64), postings)


def merge_rows(
    parts: Sequence[PostingRows], *, keep: Sequence[NDArray[np.bool_]] | None = None
) -> PostingRows:
    """Merge rows, ordered by seq; `keep` tells which rows of each part stay."""
    masks = keep or [np.ones(len(part.seqs), dtype=bool) for part in parts]
    kept = [part.seqs[mask] for part, mask in zip(parts, masks, strict=True)]
    seqs = np.sort(np.concatenate(kept))
    numbered = []
    for part, mask in zip(parts, masks, strict=True):
        numbers = np.full(len(part.seqs), -1, dtype=np.int32)
        numbers[mask] = np.searchsorted(seqs, part.seqs[mask])
        numbered.append((part.postings, numbers))
    return PostingRows(seqs, merge_postings(numbered, len(seqs)))


class WordPart(NamedTuple):
    """Documents: their seqs, ascending, and postings."""

    seqs: NDArray[np.int64]
    part: Part


@dataclass(frozen=True, eq=False, slots=True)
class IndexedRows:
    """All documents, in parts."""

    parts: Sequence[WordPart]
    coded: Sequence[CodedRows] = ()  # the codes of each part
    counts: Callable[[], BitCounts] | None = None  # of all codes; None to rank by words alone
    spare: list[NDArray[np.float32]] = field(default_factory=list)  # see `bm25_scores`


Telling: TypeAlias = Callable[[Mapping[int, float]], Mapping[int, float]]  # see `telling_terms`
Read: TypeAlias = Callable[[Collection[int]], IndexedRows]  # takes keys of terms


def mask_of(seqs: NDArray[np.int64], allowed: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which of ascending seqs are allowed."""
    mask = np.zeros(len(seqs), dtype=bool)
    mask[rows_of(seqs, allowed)] = True
    return mask


def rows_of(seqs: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the indices of the wanted values in ascending seqs; missing values are left out."""
    if not len(seqs):
        return np.zeros(0, dtype=np.int64)
    rows = np.searchsorted(seqs, wanted)
    rows[rows == len(seqs)] = 0
    return np.asarray(rows[seqs[rows] == wanted], dtype=np.int64)


class IndexTerms:
    """The terms under which words are indexed: those of the analyzer, and stop words, marked as such."""

    def __init__(self, analyzer: Analyzer) -> None:
        self._analyzer = analyzer
        self._keeping = analyzer.without_stop_words()

    def expand_all(self, words: Sequence[str]) -> list[tuple[str, ...]]:
        """Return the terms of distinct words."""
        pairs = zip(self._analyzer.expand_all(words), self._keeping.expand_all(words), strict=True)
        return [terms or tuple(STOP + term for term in kept) for terms, kept in pairs]

    def terms(self, text: str) -> list[str]:
        """Return the terms of a query; stop words only if there is nothing else."""
        return self._analyzer.terms(text) or [STOP + term for term in self._keeping.terms(text)]

    def all_terms(self, text: str) -> list[str]:
        """Return the terms of a text, with its stop words."""
        words = [text[start:end] for start, end in segment(text)]
        return [term for terms in self.expand_all(words) for term in terms]


class TermReader:
    """Turns texts into postings of all their words; stop words do not count for the length of a document."""

    def __init__(self, analyzer: Analyzer) -> None:
        self._keys: list[int] = []
        self._numbers: dict[str, int] = {}
        self._counts: list[bool] = []  # whether the term counts for the length
        self._columns = TermColumns(IndexTerms(analyzer), self._number)

    def _number(self, term: str) -> int:
        number = self._numbers.get(term)
        if number is None:
            number = self._numbers[term] = len(self._keys)
            self._keys.append(key_of(term))
            self._counts.append(not term.startswith(STOP))
        return number

    def read(self, seqs: Sequence[int], texts: Sequence[str]) -> PostingRows:
        """Return the rows of documents, which are ordered by seq."""
        counted = self._columns.count(texts)
        rows = np.repeat(np.arange(len(texts)), np.diff(counted.indptr))
        weights = counted.counts * np.array(self._counts, dtype=bool)[counted.indices]
        lengths = np.bincount(rows, weights=weights, minlength=len(texts)).astype(np.int32)
        keys = np.array(self._keys, dtype=np.uint64)
        postings = build_postings(keys, counted.indptr, counted.indices, counted.counts, lengths)
        return PostingRows(np.asarray(seqs, dtype=np.int64), postings)


def rank(
    query: WordQuery,
    terms: IndexTerms,
    *,
    telling: Telling,
    read: Read,
    k: int,
    among: NDArray[np.int64] | None,
    bits: int,
) -> Ranking:
    """Return the k best documents, ordered by (score, distance, seq).

    Args:
        query: its words, and the margins of its code.
        terms: of the collection's analyzer.
        telling: weighs related terms.
        read: returns all documents.
        k: maximum number of matches.
        among: seqs of the documents that may match, ascending; all by default.
        bits: length of the codes.
    """
    required = [key_of(term) for text in query.required for term in terms.all_terms(text)]
    excluded = [key_of(term) for text in query.excluded for term in terms.all_terms(text)]
    wanted = {term: key_of(term) for term in dict.fromkeys(terms.all_terms(query.text))}
    weights = _weights(terms.terms(query.text), query.related, telling)
    rows = read({*weights, *required, *excluded, *wanted.values()})
    by_part = bm25_scores([part for _, part in rows.parts], weights, spare=rows.spare)
    word_scale = standardize_words(
        [(part, scores) for (_, part), scores in zip(rows.parts, by_part, strict=True)]
    )
    counts = rows.counts if any(len(seqs) for seqs, _ in rows.parts) else None
    table, code_scale = score_table(query.margins, bits // 8), Standard(0.0, 0.0)
    if query.margins is not None and counts is not None:
        mean, inverse = counts().standardize(query.margins)
        code_scale = Standard(mean, inverse * query.code_weight)
    matches: list[RankedMatch] = []
    found: set[str] = set()
    for number, ((seqs, part), scores) in enumerate(zip(rows.parts, by_part, strict=True)):
        if not len(seqs):
            continue
        coded = None if query.margins is None or counts is None else rows.coded[number]
        best = best_rows(
            scores,
            coded,
            table,
            (word_scale, code_scale),
            k=k,
            allowed=_allowed(part, seqs, among, required, excluded),
            floor=matches[k - 1].score if 0 < k <= len(matches) else -np.inf,
        )
        terms_of: list[set[str]] = [set() for _ in best.rows]
        for term, key in wanted.items():
            having = part.postings.rows_of(key)
            for index in np.flatnonzero(_contains(having, best.rows)).tolist():
                terms_of[index].add(term.removeprefix(STOP))
            if len(having) and (part.live is None or part.live[having].any()):
                found.add(term.removeprefix(STOP))
        by_words = word_scale.apply(best.words)
        if coded is None:
            by_codes, distances = np.zeros(len(best.rows)), np.full(len(best.rows), bits // 2)
        else:
            by_codes = code_scale.apply(code_scores(coded.codes[best.rows], table))
            if coded.has_code is not None:
                by_codes[~coded.has_code[best.rows]] = 0.0  # neither near nor far
            distances = _distances(coded, best.rows, query.code, bits)
        columns = (seqs[best.rows], best.sums, distances, by_words, by_codes)
        for index, (seq, total, distance, word, code) in enumerate(
            zip(*(column.tolist() for column in columns), strict=True)
        ):
            own = None if query.margins is None else code
            matches.append(RankedMatch(seq, total, distance, word, own, frozenset(terms_of[index])))
    matches.sort(key=lambda match: (-match.score, match.distance, match.seq))
    return Ranking(matches[:k], frozenset(found))


def word_scores(
    text: str, seqs: Sequence[int], terms: IndexTerms, *, telling: Telling, read: Read
) -> NDArray[np.float32]:
    """Return the BM25 scores of documents for the most telling words of a text."""
    counts = Counter(map(key_of, terms.terms(text)))
    if len(counts) > MAX_TELLING:
        counts = Counter({key: counts[key] for key in telling(counts)})
    indexed = read(counts.keys())
    wanted = np.asarray(seqs, dtype=np.int64)
    result = np.zeros(len(wanted), dtype=np.float32)
    by_part = bm25_scores([part for _, part in indexed.parts], counts, spare=indexed.spare)
    for (known, part), by_word in zip(indexed.parts, by_part, strict=True):
        if not len(known):
            continue
        rows = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        has = known[rows] == wanted
        if part.live is not None:
            has &= part.live[rows]
        order = np.argsort(by_word.rows)
        listed, scores = by_word.rows[order], by_word.scores[order]
        has &= _contains(listed, rows)
        result[has] = scores[np.searchsorted(listed, rows[has])]
    return result


def _weights(terms: Sequence[str], related: Mapping[str, float], telling: Telling) -> dict[int, float]:
    """Return the weights of a query's terms and of the most telling related ones, 1/2 of the sum each."""
    counts = Counter(map(key_of, terms))
    if not related or not counts:
        return dict(counts)
    weights: Counter[int] = Counter()
    for part in (counts, telling({key_of(term): weight for term, weight in related.items()})):
        total = sum(part.values()) or 1.0
        for key, weight in part.items():
            weights[key] += 0.5 * weight / total  # type: ignore[assignment]
    return dict(weights)


def _allowed(
    part: Part,
    seqs: NDArray[np.int64],
    among: NDArray[np.int64] | None,
    required: Sequence[int],
    excluded: Sequence[int],
) -> NDArray[np.bool_] | None:
    """Return the mask of the rows that a search may return; None for all."""
    masks = [] if part.live is None else [part.live]
    if among is not None:
        masks.append(mask_of(seqs, among))
    for keys, value in ((required, True), (excluded, False)):
        for key in keys:
            mask = np.full(len(seqs), not value)
            mask[part.postings.rows_of(key)] = value
            masks.append(mask)
    return np.logical_and.reduce(masks) if masks else None


def _contains(listed: NDArray[np.integer], values: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Return which values are in a list, which is ascending."""
    if not len(listed):
        return np.zeros(len(values), dtype=np.bool_)
    positions = np.minimum(np.searchsorted(listed, values.astype(listed.dtype)), len(listed) - 1)
    is_listed: NDArray[np.bool_] = listed[positions] == values
    return is_listed


def _distances(
    coded: CodedRows, rows: NDArray[np.int64], code: NDArray[np.uint8] | None, bits: int
) -> NDArray[np.int64]:
    """Return the Hamming distances of rows; that of unrelated codes where there is none to compare."""
    unknown = np.full(len(rows), bits // 2)
    if code is None:
        return unknown
    distances = np.bitwise_count(coded.codes[rows] ^ code).sum(axis=1, dtype=np.int64)
    return distances if coded.has_code is None else np.where(coded.has_code[rows], distances, unknown)
