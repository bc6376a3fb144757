"""The codes of a local collection: a memory-mapped code file, plus an in-memory delta of later writes.

A table has two parts, each ordered by seq: `base`, mapped from the code file and immutable, of which some
rows may be dead; and `tail`, with the rows added or replaced since.

The code file is derived from the store and safe to delete; its checksum is verified when it is opened. It is
one line of JSON padded to `HEADER_BYTES`, then the seqs as int64, then the codes.
"""

from __future__ import annotations

import json
import mmap
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from snuh.collection.backend import Match
from snuh.collection.local.ivf_file import (
    INDEX_FILE,
    TunedIVF,
    build_index,
    read_index,
    update_index,
    write_index,
)
from snuh.collection.local.sqlite import DamagedRowError
from snuh.collection.local.store import LocalState, Store
from snuh.collection.ranking import mask_of, rows_of
from snuh.collection.results import CodeRows
from snuh.errors import InputError
from snuh.filters import Filter
from snuh.index import scan_many
from snuh.io import atomic_write

CODES_FILE = "codes.bin"
FORMAT, VERSION, HEADER_BYTES = "snuh-codes", 1, 4096
CHUNK_BYTES = 1 << 24
# The code file is rewritten after this many changes, or this fraction of its rows, whichever is more.
MIN_CHANGES, CHANGED_FRACTION = 20_000, 0.05
MAX_WRITES_BEHIND = 50_000  # half of the writes that the store remembers
MAX_CACHED_MASKS = 4
MAX_MASK_UPDATES = 10_000  # documents of a write, beyond which filters are evaluated again


@dataclass(frozen=True, slots=True)
class Stamp:
    """Identifies the write of the store that codes are up to date with."""

    write: int
    token: str
    last_seq: int  # of the newest document at that time, with or without a code


@dataclass(frozen=True, slots=True)
class CodeFile:
    """The contents of a code file."""

    stamp: Stamp
    rows: CodeRows


def write_code_file(path: Path, stamp: Stamp, parts: list[CodeRows]) -> None:
    """Replace the code file atomically by the concatenated rows of all parts."""
    width = parts[0].codes.shape[1]
    header = {
        "format": FORMAT,
        "version": VERSION,
        **asdict(stamp),
        "documents": sum(len(part.seqs) for part in parts),
        "width": width,
        "checksum": _stamp_checksum(stamp),
    }
    with atomic_write(path) as temporary, temporary.open("wb") as file:
        file.seek(HEADER_BYTES)
        for array in _arrays(parts):
            header["checksum"] = zlib.crc32(array.data, header["checksum"])
            file.write(array.data)
        file.seek(0)
        file.write(json.dumps(header).encode().ljust(HEADER_BYTES - 1) + b"\n")


def read_code_file(path: Path, *, width: int) -> CodeFile | None:
    """Map a code file into memory; None if it is missing, damaged, or has codes of another length."""
    try:
        with path.open("rb") as file:
            memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        header = json.loads(memory[:HEADER_BYTES])
        count = int(header["documents"])
        stamp = Stamp(int(header["write"]), str(header["token"]), int(header["last_seq"]))
        is_compatible = (header["format"], header["version"], header["width"]) == (FORMAT, VERSION, width)
        checksum = int(header["checksum"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    if not is_compatible or count < 0 or len(memory) != HEADER_BYTES + count * (8 + width):
        return None
    data = np.frombuffer(memory, dtype=np.uint8)[HEADER_BYTES:]
    computed = _stamp_checksum(stamp)
    for start in range(0, len(data), CHUNK_BYTES):
        computed = zlib.crc32(data[start : start + CHUNK_BYTES].data, computed)
    if computed != checksum:
        return None
    seqs = data[: count * 8].view(np.int64)
    return CodeFile(stamp, CodeRows(seqs, data[count * 8 :].reshape(count, width)))


def _stamp_checksum(stamp: Stamp) -> int:
    """Return the initial value of the checksum, which covers the stamp as well as the data."""
    return zlib.crc32(f"{stamp.write} {stamp.token} {stamp.last_seq}".encode())


def _arrays(parts: list[CodeRows]) -> Iterator[NDArray[np.generic]]:
    for part in parts:
        yield np.ascontiguousarray(part.seqs)
    for part in parts:
        yield np.ascontiguousarray(part.codes)


class Masks(NamedTuple):
    """The rows of both parts that a search may return; None for all."""

    base: NDArray[np.bool_] | None
    tail: NDArray[np.bool_] | None


@dataclass(slots=True)
class _CachedMask:
    """The rows that match a filter, updated by every write."""

    where: Filter
    base: NDArray[np.bool_]
    tail_seqs: NDArray[np.int64]  # of matching documents outside the base, with or without a code


class CodeTable:
    """The codes of all documents, kept up to date with the store by `refresh`."""

    def __init__(self, folder: Path, *, bits: int) -> None:
        self.path = folder / CODES_FILE
        self.width = bits // 8
        self._set_base(CodeRows(np.zeros(0, dtype=np.int64), np.zeros((0, self.width), dtype=np.uint8)))
        self.stamp: Stamp | None = None
        self._index_path = folder / INDEX_FILE
        file = read_code_file(self.path, width=self.width)
        if file is not None:
            self._set_base(file.rows)
            self.stamp = file.stamp
        self._file_stamp = self.stamp
        self._index_mtime = _mtime(self._index_path)

    def _set_base(self, base: CodeRows) -> None:
        self.base = base
        self.live: NDArray[np.bool_] | None = None  # rows of the base that are current; None for all
        self.tail = CodeRows(base.seqs[:0], base.codes[:0])
        self._index: TunedIVF | None = None
        self._masks: dict[str, _CachedMask] = {}  # by the text of the filter

    def __len__(self) -> int:
        """Count the documents that have a code."""
        return len(self.base.seqs) - self._dead() + len(self.tail.seqs)

    def _dead(self) -> int:
        return 0 if self.live is None else len(self.live) - int(np.count_nonzero(self.live))

    # Synchronization with the store

    def refresh(self, store: Store, state: LocalState) -> None:
        """Read all changes since the last call from the store."""
        self._follow_index(store, state)
        if self.stamp is not None and self.stamp.token == state.token:
            return
        last_seq = state.next_seq - 1
        before, self.stamp = self.stamp, None  # if interrupted, the next call reads everything
        if before is not None and store.remembers(before.write, before.token):
            new = store.code_rows(after=before.last_seq)
            changed = store.changed_since(before.write)
            changed = changed[changed <= before.last_seq]
            self._drop(changed)
            self._insert([new, store.code_rows_of(changed)] if len(changed) else [new])
            self._update_masks(store, changed, np.arange(before.last_seq + 1, last_seq + 1))
        else:
            self._set_base(store.code_rows())
            self._file_stamp = None  # the code file and its index belong to other codes
        if len(self) != state.codes:
            raise DamagedRowError(f"{state.codes:,} codes were written, there are {len(self):,}")
        self.stamp = Stamp(state.write, state.token, last_seq)

    def _drop(self, seqs: NDArray[np.int64]) -> None:
        if not len(seqs):
            return
        rows = rows_of(self.base.seqs, seqs)
        if len(rows):
            live = np.ones(len(self.base.seqs), dtype=bool) if self.live is None else self.live.copy()
            live[rows] = False
            self.live = live
        unchanged = np.ones(len(self.tail.seqs), dtype=bool)
        unchanged[rows_of(self.tail.seqs, seqs)] = False
        self.tail = CodeRows(self.tail.seqs[unchanged], self.tail.codes[unchanged])

    def _update_masks(self, store: Store, changed: NDArray[np.int64], new: NDArray[np.int64]) -> None:
        """Evaluate the cached filters on the documents that were written."""
        written = np.concatenate([changed, new])
        if len(written) > MAX_MASK_UPDATES:
            self._masks.clear()
        rows = rows_of(self.base.seqs, changed) if self._masks else changed
        for mask in self._masks.values():
            if len(rows):
                mask.base = mask.base.copy()
                mask.base[rows] = False
            unchanged = np.setdiff1d(mask.tail_seqs, changed, assume_unique=True)
            mask.tail_seqs = np.union1d(unchanged, store.seqs_where(mask.where, among=written))

    def _insert(self, parts: list[CodeRows]) -> None:
        self.tail = _merge([self.tail, *parts])

    @property
    def needs_saving(self) -> bool:
        """Whether the code file is so outdated that opening the collection is slow."""
        if self.stamp is None or self.stamp == self._file_stamp:
            return False
        if self._file_stamp is None or self.stamp.write - self._file_stamp.write > MAX_WRITES_BEHIND:
            return True
        changes = self._dead() + len(self.tail.seqs)
        return changes > max(MIN_CHANGES, CHANGED_FRACTION * len(self.base.seqs))

    def _follow_index(self, store: Store, state: LocalState) -> None:
        """If another process has built an index, drop the old one and adopt the new code file."""
        mtime = _mtime(self._index_path)
        if mtime != self._index_mtime:
            self._index_mtime, self._index = mtime, None
            self.adopt(store, state)

    def adopt(self, store: Store, state: LocalState) -> None:
        """Switch to a code file that another process has written, and to its index."""
        file = read_code_file(self.path, width=self.width)
        if file is None or file.stamp == self._file_stamp:
            return
        if file.stamp.write > state.write:
            self._index_mtime = None  # this transaction is too old: check again in the next one
        elif store.remembers(file.stamp.write, file.stamp.token):
            self._set_base(file.rows)
            self.stamp = self._file_stamp = file.stamp
            self.refresh(store, state)

    def save(self) -> None:
        """Write all codes to the code file and map it as the new base."""
        if self.stamp is None:
            raise InputError("a table that has not read its store has nothing to save: call refresh first")
        if self.stamp == self._file_stamp:
            return
        index, old_seqs, live, rows = self.index(), self.base.seqs, self.live, self.rows()
        masks = {key: self._merged_mask(mask, rows) for key, mask in self._masks.items()}
        write_code_file(self.path, self.stamp, [rows])
        self._file_stamp = self.stamp
        file = read_code_file(self.path, width=self.width)
        # Another process may have replaced the file by a newer one; then the rows in memory are the base.
        self._set_base(file.rows if file is not None and file.stamp == self.stamp else rows)
        self._masks = masks
        if index is not None:
            self._save_index(update_index(index, old_seqs, live, self.base))

    # The approximate index

    def index(self) -> TunedIVF | None:
        """Return the index of the base; None if there is none."""
        if self._index is None and self._file_stamp is not None:
            self._index = read_index(self._index_path, token=self._file_stamp.token)
        return self._index

    def build_index(self, *, k: int, recall: float) -> TunedIVF:
        """Build the index of the base, replacing an older one."""
        index = build_index(self.base.codes, k=k, recall=recall)
        self._save_index(index)
        return index

    def _save_index(self, index: TunedIVF) -> None:
        if self._file_stamp is None:
            raise InputError("a table without a code file cannot have an index: call save first")
        self._index = index
        write_index(self._index_path, index, token=self._file_stamp.token)
        self._index_mtime = _mtime(self._index_path)

    # Lookups

    def rows(self) -> CodeRows:
        """Return all codes, ordered by seq."""
        base = self.base
        if self.live is not None:
            base = CodeRows(base.seqs[self.live], base.codes[self.live])
        return _merge([base, self.tail]) if len(self.tail.seqs) else base

    def codes_of(self, seqs: Sequence[int]) -> CodeRows:
        """Return the codes of these documents, ordered by seq; documents without a code are left out."""
        wanted = np.array(sorted(set(seqs)), dtype=np.int64)  # np.unique imports numpy.ma, a tenth of NumPy
        in_base, in_tail = rows_of(self.base.seqs, wanted), rows_of(self.tail.seqs, wanted)
        if self.live is not None:
            in_base = in_base[self.live[in_base]]
        base = CodeRows(self.base.seqs[in_base], self.base.codes[in_base])
        if not len(in_tail):
            return base
        return _merge([base, CodeRows(self.tail.seqs[in_tail], self.tail.codes[in_tail])])

    def masks(self, where: Filter, store: Store) -> Masks:
        """Return masks of the rows that match a filter."""
        cached = self._cached_mask(where, store)
        return Masks(cached.base, mask_of(self.tail.seqs, cached.tail_seqs))

    def matching(self, where: Filter, store: Store) -> NDArray[np.int64]:
        """Return the seqs of the documents that match a filter, with or without a code, ascending."""
        cached = self._cached_mask(where, store)
        return np.sort(np.concatenate([self.base.seqs[cached.base], cached.tail_seqs]))

    def _cached_mask(self, where: Filter, store: Store) -> _CachedMask:
        """Evaluate a filter; the last few are cached."""
        key = str(where)
        if key not in self._masks:
            if len(self._masks) >= MAX_CACHED_MASKS:
                self._masks.pop(next(iter(self._masks)))
            seqs = store.seqs_where(where)
            base = mask_of(self.base.seqs, seqs)
            base = base if self.live is None else base & self.live
            tail_seqs = np.setdiff1d(seqs, self.base.seqs[base], assume_unique=True)
            self._masks[key] = _CachedMask(where, base, tail_seqs)
        return self._masks[key]

    def _merged_mask(self, mask: _CachedMask, rows: CodeRows) -> _CachedMask:
        """Return the mask of all rows, when they become the base."""
        merged = np.zeros(len(rows.seqs), dtype=bool)
        merged[rows_of(rows.seqs, self.base.seqs[mask.base])] = True
        merged[rows_of(rows.seqs, mask.tail_seqs)] = True
        without_code = np.setdiff1d(mask.tail_seqs, rows.seqs, assume_unique=True)
        return _CachedMask(mask.where, merged, without_code)

    def scan(
        self,
        queries: NDArray[np.uint8],
        *,
        k: int,
        radius: int | None = None,
        masks: Masks | None = None,
        index: TunedIVF | None = None,
    ) -> list[list[Match]]:
        """Return the nearest documents of each query, ordered by (distance, seq).

        Args:
            queries: packed codes (queries, bytes).
            k: maximum number of matches per query.
            radius: maximum distance of a match.
            masks: rows to search; all by default.
            index: the index to use for the base, instead of scanning all of it.
        """
        matches: list[list[Match]] = [[] for _ in queries]
        masks = masks or Masks(self.live, None)
        for part, mask in ((self.base, masks.base), (self.tail, masks.tail)):
            if not len(part.seqs):  # usually true of the tail
                continue
            if index is not None and part is self.base:
                search, n_probe = index.ivf.search, index.n_probe
                centroids = scan_many(queries, index.ivf.centroids, k=n_probe)
                results = [
                    search(
                        query,
                        part.codes,
                        k=k,
                        n_probe=n_probe,
                        allowed=mask,
                        radius=radius,
                        nearest_lists=near.rows,
                    )
                    for query, near in zip(queries, centroids, strict=True)
                ]
            else:
                results = scan_many(queries, part.codes, k=k, allowed=mask, radius=radius)
            for query_matches, result in zip(matches, results, strict=True):
                query_matches += map(Match, result.distances.tolist(), part.seqs[result.rows].tolist())
        return [sorted(query_matches)[:k] for query_matches in matches]


def _mtime(path: Path) -> int | None:
    """Return the modification time of a file; None if it does not exist."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return None


def _merge(parts: Sequence[CodeRows]) -> CodeRows:
    """Concatenate rows and order them by seq."""
    seqs = np.concatenate([part.seqs for part in parts])
    order = np.argsort(seqs, kind="stable")
    return CodeRows(seqs[order], np.concatenate([part.codes for part in parts])[order])
