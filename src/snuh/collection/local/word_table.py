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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from snuh.collection.backend import Ranking, WordQuery
from snuh.collection.local.code_table import CodeTable, Stamp
from snuh.collection.local.store import LocalState, Store
from snuh.collection.ranking import (
    MAX_TELLING,
    IndexedRows,
    IndexTerms,
    PostingRows,
    TermReader,
    WordPart,
    empty_rows,
    mask_of,
    merge_rows,
    rank,
    rows_of,
    word_scores,
)
from snuh.errors import InputError
from snuh.features.analyzer import Analyzer
from snuh.index.bm25 import Part, Postings, telling_terms
from snuh.index.fusion import BitCounts, CodedRows
from snuh.io import atomic_write

WORDS_FILE = "words.bin"
FORMAT, VERSION, HEADER_BYTES = "snuh-words", 1, 4096
CHUNK_BYTES = 1 << 24
BATCH_DOCUMENTS = 5_000
# The file is rewritten after this many changes, or this fraction of its rows, whichever is more.
MIN_CHANGES, CHANGED_FRACTION = 5_000, 0.05
MAX_WRITES_BEHIND = 50_000


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
            WordPart(self.base.seqs, Part(self.base.postings, self.live)),
            WordPart(self.tail.seqs, Part(self.tail.postings)),
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
        fresh = merge_rows([empty_rows(), *self._read_after(store, 0)])
        return self._all_rows().equals(fresh)

    def _all_rows(self) -> PostingRows:
        live = np.ones(len(self.base.seqs), dtype=bool) if self.live is None else self.live
        return merge_rows([self.base, self.tail], keep=[live, np.ones(len(self.tail.seqs), dtype=bool)])

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
        self.tail = merge_rows([self.tail], keep=[~mask_of(self.tail.seqs, seqs)])
        self._set_parts()

    def _insert(self, parts: list[PostingRows]) -> None:
        if parts:
            self.tail = merge_rows([self.tail, *parts])
            self._set_parts()

    def rank(
        self, query: WordQuery, codes: CodeTable, *, k: int, among: NDArray[np.int64] | None, bits: int
    ) -> Ranking:
        """Return the k best documents, as `ranking.rank` does.

        Args:
            query: its words, and the margins of its code.
            codes: of the same state.
            k: maximum number of matches.
            among: seqs of the documents that may match, ascending; all by default.
            bits: length of the codes.
        """

        def read(keys: object) -> IndexedRows:
            if query.margins is None:
                return self._read_words(keys)
            coded = self._codes_of(codes)
            return IndexedRows(self.parts, coded.parts, lambda: coded.counts, self._spare)

        return rank(query, self._terms, telling=self._telling, read=read, k=k, among=among, bits=bits)

    def scores(self, text: str, seqs: Sequence[int]) -> NDArray[np.float32]:
        """Return the BM25 scores of documents for the most telling words of a text."""
        return word_scores(text, seqs, self._terms, telling=self._telling, read=self._read_words)

    def _read_words(self, _: object) -> IndexedRows:
        return IndexedRows(self.parts, spare=self._spare)

    def _telling(self, weights: Mapping[int, float]) -> dict[int, float]:
        return telling_terms([part for _, part in self.parts], weights, limit=MAX_TELLING)

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
    of: list[WordPart]
    parts: list[CodedRows]
    base: BitCounts  # of the first part
    counts: BitCounts  # of all


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
