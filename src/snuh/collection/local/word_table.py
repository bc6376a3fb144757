"""The words of a local collection: a memory-mapped file of postings, plus an in-memory delta of later writes.

Like the code table, it is derived from the store and safe to delete: `base` is mapped from the file and
immutable, some of its rows may be dead; `tail` has the rows added or replaced since. Every word of a document
is indexed, also stop words and those outside of the model's vocabulary.

The file is one line of JSON padded to `HEADER_BYTES`, then the arrays. Its checksum is verified when it is
opened.
"""

from __future__ import annotations

import json
import mmap
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from snuh.collection.backend import RankedMatch, Ranking, WordQuery
from snuh.collection.local.code_table import CodeTable, Stamp, mask_of, rows_of
from snuh.collection.local.store import LocalState, Store
from snuh.errors import InputError
from snuh.features.analyzer import Analyzer, segment
from snuh.features.counting import TermColumns
from snuh.index.bm25 import (
    Part,
    Postings,
    bm25_scores,
    build_postings,
    key_of,
    merge_postings,
    telling_terms,
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
from snuh.io import atomic_write

WORDS_FILE = "words.bin"
FORMAT, VERSION, HEADER_BYTES = "snuh-words", 1, 4096
CHUNK_BYTES = 1 << 24
BATCH_DOCUMENTS = 5_000
STOP = "\0"  # before the term of a stop word
# The file is rewritten after this many changes, or this fraction of its rows, whichever is more.
MIN_CHANGES, CHANGED_FRACTION = 5_000, 0.05
MAX_WRITES_BEHIND = 50_000
MAX_TELLING = 30  # words of a document that are compared with those of others


@dataclass(frozen=True, eq=False, slots=True)
class PostingRows:
    """Postings with the seqs of their rows, ascending."""

    seqs: NDArray[np.int64]
    postings: Postings


def empty_rows() -> PostingRows:
    """Return no rows."""
    integers = np.zeros(0, dtype=np.int32)
    postings = Postings(
        np.zeros(0, np.uint64), np.zeros(1, np.int64), integers, np.zeros(0, np.uint8), integers
    )
    return PostingRows(np.zeros(0, dtype=np.int64), postings)


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


class WordTable:
    """The postings of all documents, kept up to date with the store by `refresh`."""

    def __init__(self, folder: Path, analyzer: Analyzer) -> None:
        self.path = folder / WORDS_FILE
        self.analyzer = analyzer
        self.fingerprint = f"{zlib.crc32(json.dumps(analyzer.to_json(), sort_keys=True).encode()):08x}"
        self._terms = IndexTerms(analyzer)
        self._reader: TermReader | None = None
        self._spare: list[NDArray[np.float32]] = []
        self._set_base(empty_rows())
        self.stamp: Stamp | None = None
        if (file := read_word_file(self.path, self.fingerprint)) is not None:
            self.stamp, base = file
            self._set_base(base)
        self._file_stamp = self.stamp

    def _set_base(self, base: PostingRows) -> None:
        self.base, self.tail = base, empty_rows()
        self.live: NDArray[np.bool_] | None = None  # rows of the base that are current; None for all
        self._coded: _Coded | None = None
        self._set_parts()

    def _set_parts(self) -> None:
        """Set the seqs and postings to search, after a change."""
        self.parts = [
            (self.base.seqs, Part(self.base.postings, self.live)),
            (self.tail.seqs, Part(self.tail.postings)),
        ]

    def __len__(self) -> int:
        """Count the documents."""
        return len(self.base.seqs) - self._dead() + len(self.tail.seqs)

    def _dead(self) -> int:
        return 0 if self.live is None else len(self.live) - int(np.count_nonzero(self.live))

    def refresh(self, store: Store, state: LocalState) -> None:
        """Read all changes since the last call from the store."""
        if self.stamp is not None and self.stamp.token == state.token:
            return
        before, self.stamp = self.stamp, None  # if interrupted, the next call reads everything
        if before is not None and store.remembers(before.write, before.token):
            changed = store.changed_since(before.write)
            changed = changed[changed <= before.last_seq]
            self._drop(changed)
            documents = sorted(store.documents_of(changed.tolist()).items()) if len(changed) else []
            parts = [self._read((seq, document.text) for seq, document in documents)] if documents else []
            self._insert([*parts, *self._read_after(store, before.last_seq)])
        else:
            self._set_base(empty_rows())
            self._insert(list(self._read_after(store, 0)))
            self._file_stamp = None
        self.stamp = Stamp(state.write, state.token, state.next_seq - 1)

    def is_correct(self, store: Store) -> bool:
        """Read all documents again, and tell whether their words are those of the table."""
        fresh = _merge([empty_rows(), *self._read_after(store, 0)])
        rows = self._all_rows()
        pairs = [(rows.seqs, fresh.seqs)]
        pairs += [
            (getattr(rows.postings, name), getattr(fresh.postings, name)) for name in Postings.__slots__
        ]
        return all(np.array_equal(one, other) for one, other in pairs)

    def _all_rows(self) -> PostingRows:
        live = np.ones(len(self.base.seqs), dtype=bool) if self.live is None else self.live
        return _merge([self.base, self.tail], keep=[live, np.ones(len(self.tail.seqs), dtype=bool)])

    def _read_after(self, store: Store, last: int) -> Iterator[PostingRows]:
        while batch := store.documents(after=last, limit=BATCH_DOCUMENTS):
            yield self._read((seq, document.text) for seq, document in batch)
            last = batch[-1][0]

    def _read(self, documents: Iterable[tuple[int, str]]) -> PostingRows:
        if self._reader is None:
            self._reader = TermReader(self.analyzer)
        seqs, texts = zip(*documents, strict=True)
        return self._reader.read(seqs, texts)

    def _drop(self, seqs: NDArray[np.int64]) -> None:
        if not len(seqs):
            return
        in_base = mask_of(self.base.seqs, seqs)
        if in_base.any():
            self.live = ~in_base if self.live is None else self.live & ~in_base
        self.tail = _merge([self.tail], keep=[~mask_of(self.tail.seqs, seqs)])
        self._set_parts()

    def _insert(self, parts: list[PostingRows]) -> None:
        if parts:
            self.tail = _merge([self.tail, *parts])
            self._set_parts()

    def rank(
        self, query: WordQuery, codes: CodeTable, *, k: int, among: NDArray[np.int64] | None, bits: int
    ) -> Ranking:
        """Return the k best documents, ordered by (score, distance, seq).

        Args:
            query: its words, and the margins of its code.
            codes: of the same state.
            k: maximum number of matches.
            among: seqs of the documents that may match, ascending; all by default.
            bits: length of the codes.
        """
        terms, parts = self._terms, self.parts
        required = [key_of(term) for text in query.required for term in terms.all_terms(text)]
        excluded = [key_of(term) for text in query.excluded for term in terms.all_terms(text)]
        weights = self._weights(terms.terms(query.text), query.related)
        word_scores = bm25_scores([part for _, part in parts], weights, spare=self._spare)
        word_scale = standardize_words(
            [(part, scores) for (_, part), scores in zip(parts, word_scores, strict=True)]
        )
        table, code_scale, coded = score_table(query.margins, codes.width), Standard(0.0, 0.0), None
        if query.margins is not None:
            coded = self._codes_of(codes)
            scale = coded.counts.standardize(query.margins)
            code_scale = Standard(scale.mean, scale.inverse * query.code_weight)
        matches: list[RankedMatch] = []
        found: set[str] = set()
        wanted = {term: key_of(term) for term in dict.fromkeys(terms.all_terms(query.text))}
        for number, ((seqs, part), by_word) in enumerate(zip(parts, word_scores, strict=True)):
            if not len(seqs):
                continue
            rows = None if coded is None else coded.parts[number]
            best = best_rows(
                by_word,
                rows,
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
            if rows is None:
                by_codes, distances = np.zeros(len(best.rows)), np.full(len(best.rows), bits // 2)
            else:
                by_codes = code_scale.apply(code_scores(rows.codes[best.rows], table))
                if rows.has_code is not None:
                    by_codes[~rows.has_code[best.rows]] = 0.0  # neither near nor far
                distances = _distances(rows, best.rows, query.code, bits)
            columns = (seqs[best.rows], best.sums, distances, by_words, by_codes)
            for index, (seq, total, distance, word, code) in enumerate(
                zip(*(column.tolist() for column in columns), strict=True)
            ):
                own = None if query.margins is None else code
                matches.append(RankedMatch(seq, total, distance, word, own, frozenset(terms_of[index])))
        matches.sort(key=lambda match: (-match.score, match.distance, match.seq))
        return Ranking(matches[:k], frozenset(found))

    def _weights(self, terms: Sequence[str], related: Mapping[str, float]) -> dict[int, float]:
        """Return the weights of a query's terms and of the most telling related ones, 1/2 of the sum each."""
        counts = Counter(map(key_of, terms))
        if not related or not counts:
            return dict(counts)
        telling = telling_terms(
            [part for _, part in self.parts],
            {key_of(term): weight for term, weight in related.items()},
            limit=MAX_TELLING,
        )
        weights: Counter[int] = Counter()
        for part in (counts, telling):
            total = sum(part.values()) or 1.0
            for key, weight in part.items():
                weights[key] += 0.5 * weight / total  # type: ignore[assignment]
        return dict(weights)

    def scores(self, text: str, seqs: Sequence[int]) -> NDArray[np.float32]:
        """Return the BM25 scores of documents for the most telling words of a text."""
        parts = self.parts
        counts = Counter(map(key_of, self._terms.terms(text)))
        if len(counts) > MAX_TELLING:
            telling = telling_terms([part for _, part in parts], counts, limit=MAX_TELLING)
            counts = Counter({key: counts[key] for key in telling})
        wanted = np.asarray(seqs, dtype=np.int64)
        result = np.zeros(len(wanted), dtype=np.float32)
        for (known, part), by_word in zip(
            parts, bm25_scores([part for _, part in parts], counts, spare=self._spare), strict=True
        ):
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

    def _codes_of(self, codes: CodeTable) -> _Coded:
        """Return the codes of the rows of all parts."""
        token = "" if codes.stamp is None else codes.stamp.token
        before = self._coded
        if before is not None and before.token == token and before.of is self.parts:
            return before
        parts = [self._align(codes, number) for number in range(len(self.parts))]
        if before is not None and len(before.parts[0].codes) == len(parts[0].codes):
            base = before.base.updated(before.parts[0], parts[0])
        else:
            base = BitCounts.of(parts[0])
        counts = sum((BitCounts.of(part) for part in parts[1:]), base)
        self._coded = _Coded(token, self.parts, parts, base, counts)
        return self._coded

    def _align(self, codes: CodeTable, number: int) -> CodedRows:
        """Return the codes of the rows of a part; they are the code file itself if it has the same rows."""
        seqs, part = self.parts[number]
        if codes.live is None and not len(codes.tail.seqs) and np.array_equal(codes.base.seqs, seqs):
            return CodedRows(codes.base.codes, part.live)
        rows = codes.rows()
        aligned = np.zeros((len(seqs), codes.width), dtype=np.uint8)
        has_code = mask_of(seqs, rows.seqs)
        aligned[has_code] = rows.codes[rows_of(rows.seqs, seqs[has_code])]
        if part.live is not None:
            has_code &= part.live  # a dead row may be that of a replaced document, whose code is in the tail
        return CodedRows(aligned, has_code)

    @property
    def needs_saving(self) -> bool:
        """Whether the file is so outdated that opening the collection is slow."""
        if self.stamp is None or self.stamp == self._file_stamp:
            return False
        if self._file_stamp is None or self.stamp.write - self._file_stamp.write > MAX_WRITES_BEHIND:
            return True
        return self._dead() + len(self.tail.seqs) > max(MIN_CHANGES, CHANGED_FRACTION * len(self.base.seqs))

    def save(self) -> None:
        """Write all postings to the file, which becomes the base."""
        if self.stamp is None:
            raise InputError("a table that has not read its store has nothing to save: call refresh first")
        rows = self._all_rows()
        write_word_file(self.path, self.stamp, self.fingerprint, rows)
        self._file_stamp = self.stamp
        file = read_word_file(self.path, self.fingerprint)
        # Another process may have replaced the file by a newer one; then the rows in memory are the base.
        self._set_base(file[1] if file is not None and file[0] == self.stamp else rows)


class _Coded(NamedTuple):
    """The codes of all rows at some state of the collection."""

    token: str  # of the codes
    of: list[tuple[NDArray[np.int64], Part]]
    parts: list[CodedRows]
    base: BitCounts  # of the first part
    counts: BitCounts  # of all


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
    places = np.minimum(np.searchsorted(listed, values.astype(listed.dtype)), len(listed) - 1)
    contained: NDArray[np.bool_] = listed[places] == values
    return contained


def _distances(
    codes: CodedRows, rows: NDArray[np.int64], code: NDArray[np.uint8] | None, bits: int
) -> NDArray[np.int64]:
    """Return the Hamming distances of rows; that of unrelated codes where there is none to compare."""
    unknown = np.full(len(rows), bits // 2)
    if code is None:
        return unknown
    distances = np.bitwise_count(codes.codes[rows] ^ code).sum(axis=1, dtype=np.int64)
    return distances if codes.has_code is None else np.where(codes.has_code[rows], distances, unknown)


def _merge(parts: Sequence[PostingRows], *, keep: Sequence[NDArray[np.bool_]] | None = None) -> PostingRows:
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


def write_word_file(path: Path, stamp: Stamp, fingerprint: str, rows: PostingRows) -> None:
    """Replace the file atomically."""
    postings = rows.postings
    arrays: dict[str, NDArray[Any]] = {
        "seqs": rows.seqs,
        "keys": postings.keys,
        "indptr": postings.indptr,
        "rows": postings.rows,
        "lengths": postings.lengths,
        "counts": postings.counts,  # the widest first, so that all are aligned
    }
    header: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        **asdict(stamp),
        "analyzer": fingerprint,
        "sizes": {name: len(array) for name, array in arrays.items()},
        "checksum": _start(stamp, fingerprint),
    }
    with atomic_write(path) as temporary, temporary.open("wb") as file:
        file.seek(HEADER_BYTES)
        for array in arrays.values():
            data = np.ascontiguousarray(array)
            header["checksum"] = zlib.crc32(data.data, header["checksum"])
            file.write(data.data)
        file.seek(0)
        file.write(json.dumps(header).encode().ljust(HEADER_BYTES - 1) + b"\n")


_TYPES = {
    "seqs": np.int64, "keys": np.uint64, "indptr": np.int64,
    "rows": np.int32, "lengths": np.int32, "counts": np.uint8,
}  # fmt: skip


def read_word_file(path: Path, fingerprint: str) -> tuple[Stamp, PostingRows] | None:
    """Map a file into memory; None if it is missing, damaged, or of another analyzer."""
    try:
        with path.open("rb") as file:
            memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        header = json.loads(memory[:HEADER_BYTES])
        stamp = Stamp(int(header["write"]), str(header["token"]), int(header["last_seq"]))
        expected = (FORMAT, VERSION, fingerprint)
        is_compatible = (header["format"], header["version"], header["analyzer"]) == expected
        sizes = {name: int(header["sizes"][name]) for name in _TYPES}
        checksum = int(header["checksum"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    total = sum(size * np.dtype(_TYPES[name]).itemsize for name, size in sizes.items())
    if not is_compatible or min(sizes.values()) < 0 or len(memory) != HEADER_BYTES + total:
        return None
    data = np.frombuffer(memory, dtype=np.uint8)[HEADER_BYTES:]
    computed = _start(stamp, fingerprint)
    for start in range(0, len(data), CHUNK_BYTES):
        computed = zlib.crc32(data[start : start + CHUNK_BYTES].data, computed)
    if computed != checksum:
        return None
    arrays, position = {}, 0
    for name, kind in _TYPES.items():
        length = sizes[name] * np.dtype(kind).itemsize
        arrays[name] = data[position : position + length].view(kind)
        position += length
    seqs = arrays.pop("seqs")
    return stamp, PostingRows(seqs, Postings(**arrays))


def _start(stamp: Stamp, fingerprint: str) -> int:
    """Return the initial value of the checksum, which covers the stamp as well as the data."""
    return zlib.crc32(f"{stamp.write} {stamp.token} {stamp.last_seq} {fingerprint}".encode())
