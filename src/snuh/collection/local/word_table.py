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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from snuh.collection.backend import RankedMatch, WordQuery
from snuh.collection.local.code_table import CodeTable, Stamp
from snuh.collection.local.store import LocalState, Store
from snuh.errors import InputError
from snuh.features.analyzer import Analyzer, segment
from snuh.index.bm25 import Part, Postings, bm25_scores, build_postings, key_of, merge_postings
from snuh.index.fusion import Standard, code_scores, standardize, top_rows
from snuh.io import atomic_write

WORDS_FILE = "words.bin"
FORMAT, VERSION, HEADER_BYTES = "snuh-words", 1, 4096
CHUNK_BYTES = 1 << 24
BATCH_DOCUMENTS = 5_000
STOP = "\0"  # before the term of a stop word
# The file is rewritten after this many changes, or this fraction of its rows, whichever is more.
MIN_CHANGES, CHANGED_FRACTION = 5_000, 0.05
MAX_WRITES_BEHIND = 50_000


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
        from snuh.features.tokenizer_numba import TermColumns

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
        self._reader: TermReader | None = None
        self._set_base(empty_rows())
        self.stamp: Stamp | None = None
        if (file := read_word_file(self.path, self.fingerprint)) is not None:
            self.stamp, base = file
            self._set_base(base)
        self._file_stamp = self.stamp

    def _set_base(self, base: PostingRows) -> None:
        self.base, self.tail = base, empty_rows()
        self.live: NDArray[np.bool_] | None = None  # rows of the base that are current; None for all
        self._aligned: dict[tuple[str, int], _Codes] = {}  # by the token of the codes and the part

    @property
    def parts(self) -> list[tuple[NDArray[np.int64], Part]]:
        """The seqs and postings to search."""
        return [
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
        in_base = np.isin(self.base.seqs, seqs, assume_unique=True)
        if in_base.any():
            self.live = ~in_base if self.live is None else self.live & ~in_base
        self.tail = _merge([self.tail], keep=[~np.isin(self.tail.seqs, seqs, assume_unique=True)])

    def _insert(self, parts: list[PostingRows]) -> None:
        if parts:
            self.tail = _merge([self.tail, *parts])

    def rank(
        self, query: WordQuery, codes: CodeTable, *, k: int, among: NDArray[np.int64] | None, bits: int
    ) -> list[RankedMatch]:
        """Return the k best documents, ordered by (score, distance, seq).

        Args:
            query: its words, and the margins of its code.
            codes: of the same state.
            k: maximum number of matches.
            among: seqs of the documents that may match, ascending; all by default.
            bits: length of the codes.
        """
        terms = IndexTerms(self.analyzer)
        keys = [key_of(term) for term in terms.terms(query.text)]
        required = [key_of(term) for text in query.required for term in terms.all_terms(text)]
        excluded = [key_of(term) for text in query.excluded for term in terms.all_terms(text)]
        parts = self.parts
        word_scores = bm25_scores([part for _, part in parts], keys)
        word_scale = standardize(
            [(scores, part.live) for scores, (_, part) in zip(word_scores, parts, strict=True)]
        )
        aligned = [self._codes_of(codes, seqs, number) for number, (seqs, _) in enumerate(parts)]
        by_code = [np.zeros(len(seqs), dtype=np.float32) for seqs, _ in parts]
        code_scale = Standard(0.0, 0.0)
        if query.margins is not None:
            by_code = [code_scores(rows.codes, query.margins) for rows in aligned]
            code_scale = standardize([(s, rows.has_code) for s, rows in zip(by_code, aligned, strict=True)])
            for scores, rows in zip(by_code, aligned, strict=True):
                if rows.has_code is not None:
                    scores[~rows.has_code] = code_scale.mean  # neither near nor far
        matches = []
        for number, (seqs, part) in enumerate(parts):
            allowed = _allowed(part, seqs, among, required, excluded)
            if query.margins is None or not code_scale.inverse:
                # By words alone, a document must have one of them.
                has_word = word_scores[number] > 0
                allowed = has_word if allowed is None else allowed & has_word
            best, sums = top_rows(
                word_scores[number], by_code[number], (word_scale, code_scale), k=k, allowed=allowed
            )
            present = {
                term.removeprefix(STOP): set(
                    best[np.isin(best, part.postings.rows_of(key_of(term)))].tolist()
                )
                for term in dict.fromkeys(terms.all_terms(query.text))
            }
            for row, total in zip(best.tolist(), sums.tolist(), strict=True):
                word = (float(word_scores[number][row]) - word_scale.mean) * word_scale.inverse
                code = (float(by_code[number][row]) - code_scale.mean) * code_scale.inverse
                distance = _distance(aligned[number], row, query.margins, bits)
                by_words = query.margins is None
                has = frozenset(term for term, rows in present.items() if row in rows)
                matches.append(
                    RankedMatch(int(seqs[row]), total, distance, word, None if by_words else code, has)
                )
        return sorted(matches, key=lambda match: (-match.score, match.distance, match.seq))[:k]

    def _codes_of(self, codes: CodeTable, seqs: NDArray[np.int64], part: int) -> _Codes:
        """Return the codes of rows; they are the code file itself if it has the same rows."""
        if codes.live is None and not len(codes.tail.seqs) and np.array_equal(codes.base.seqs, seqs):
            return _Codes(codes.base.codes, None)
        key = ("" if codes.stamp is None else codes.stamp.token, part)
        if (cached := self._aligned.get(key)) is not None:
            return cached
        rows = codes.rows()
        aligned = np.zeros((len(seqs), codes.width), dtype=np.uint8)
        positions = np.searchsorted(seqs, rows.seqs)
        known = positions < len(seqs)
        known[known] = seqs[positions[known]] == rows.seqs[known]
        aligned[positions[known]] = rows.codes[known]
        has_code = np.zeros(len(seqs), dtype=bool)
        has_code[positions[known]] = True
        if len(self._aligned) >= 4:
            self._aligned.clear()
        self._aligned[key] = _Codes(aligned, has_code)
        return self._aligned[key]

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
        live = np.ones(len(self.base.seqs), dtype=bool) if self.live is None else self.live
        rows = _merge([self.base, self.tail], keep=[live, np.ones(len(self.tail.seqs), dtype=bool)])
        write_word_file(self.path, self.stamp, self.fingerprint, rows)
        self._file_stamp = self.stamp
        file = read_word_file(self.path, self.fingerprint)
        # Another process may have replaced the file by a newer one; then the rows in memory are the base.
        self._set_base(file[1] if file is not None and file[0] == self.stamp else rows)


class _Codes(NamedTuple):
    """The codes of rows, and which rows have one; None for all."""

    codes: NDArray[np.uint8]
    has_code: NDArray[np.bool_] | None


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
        masks.append(np.isin(seqs, among, assume_unique=True))
    for keys, value in ((required, True), (excluded, False)):
        for key in keys:
            mask = np.full(len(seqs), not value)
            mask[part.postings.rows_of(key)] = value
            masks.append(mask)
    return np.logical_and.reduce(masks) if masks else None


def _distance(rows: _Codes, row: int, margins: NDArray[np.floating] | None, bits: int) -> int:
    """Return the Hamming distance of a row's code; that of unrelated codes if there is none to compare."""
    if margins is None or (rows.has_code is not None and not rows.has_code[row]):
        return bits // 2
    return int(np.count_nonzero(np.unpackbits(rows.codes[row]) != (margins > 0)))


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
