"""The codes of a collection in memory: those of the code file, and what was written since.

A search sees two parts, each ordered by seq: `base`, mapped from the file and never changed, in which some
documents are gone; and `tail`, with the documents that came or changed since.
"""

from __future__ import annotations

import json
import mmap
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from snuh.collection.backend import Match
from snuh.collection.local.ivf_file import (
    LISTS_FILE,
    IVFSnapshot,
    build_index,
    move_lists,
    read_lists,
    write_lists,
)
from snuh.collection.local.store import State, Store
from snuh.collection.results import CodeRows
from snuh.errors import InputError
from snuh.index import scan_many
from snuh.io import atomic_write

# The file of codes that searches scan: made from the store, checked when it is opened, safe to delete.
#
# A line of JSON, padded to `DATA_AT` bytes, then the seqs as int64, then the codes; both are memory-mapped.

CODES_FILE = "codes.bin"
FORMAT, VERSION, DATA_AT = "snuh-codes", 1, 4096
PIECE_BYTES = 1 << 24


@dataclass(frozen=True, slots=True)
class Stamp:
    """The write of the store that codes belong to."""

    write: int
    token: str
    last_seq: int  # of the newest document at that time, whether it has a code or not


@dataclass(frozen=True, slots=True)
class CodeFile:
    """Codes with their stamp."""

    stamp: Stamp
    rows: CodeRows


def write_code_file(path: Path, stamp: Stamp, parts: list[CodeRows]) -> None:
    """Write the codes of all parts, one after the other, in the place of an older file."""
    width = parts[0].codes.shape[1]
    header = {
        "format": FORMAT,
        "version": VERSION,
        **asdict(stamp),
        "documents": sum(len(part.seqs) for part in parts),
        "width": width,
        "checksum": _checksum(stamp),
    }
    with atomic_write(path) as beside, beside.open("wb") as file:
        file.seek(DATA_AT)
        for piece in _pieces(parts):
            header["checksum"] = zlib.crc32(piece.data, header["checksum"])
            file.write(piece.data)
        file.seek(0)
        file.write(json.dumps(header).encode().ljust(DATA_AT - 1) + b"\n")


def read_code_file(path: Path, *, width: int) -> CodeFile | None:
    """Map the file into memory; None where it is absent, damaged, or holds codes of another length."""
    try:
        with path.open("rb") as file:
            memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        header = json.loads(memory[:DATA_AT])
        count = int(header["documents"])
        stamp = Stamp(int(header["write"]), str(header["token"]), int(header["last_seq"]))
        is_ours = (header["format"], header["version"], header["width"]) == (FORMAT, VERSION, width)
        checksum = int(header["checksum"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    if not is_ours or count < 0 or len(memory) != DATA_AT + count * (8 + width):
        return None
    data = np.frombuffer(memory, dtype=np.uint8)[DATA_AT:]
    found = _checksum(stamp)
    for start in range(0, len(data), PIECE_BYTES):
        found = zlib.crc32(data[start : start + PIECE_BYTES].data, found)
    if found != checksum:
        return None
    seqs = data[: count * 8].view(np.int64)
    return CodeFile(stamp, CodeRows(seqs, data[count * 8 :].reshape(count, width)))


def _checksum(stamp: Stamp) -> int:
    """Return what the checksum of the data starts from: a stamp that was damaged would be believed."""
    return zlib.crc32(f"{stamp.write} {stamp.token} {stamp.last_seq}".encode())


def _pieces(parts: list[CodeRows]) -> Iterator[NDArray[np.generic]]:
    for part in parts:
        yield np.ascontiguousarray(part.seqs)
    for part in parts:
        yield np.ascontiguousarray(part.codes)


MIN_CHANGES, CHANGED_FRACTION = 20_000, 0.05  # from which the file is written anew
REMEMBERED_MASKS = 4
MAX_WRITES = 50_000  # half of what the store remembers


class Masks(NamedTuple):
    """Which documents of the two parts a search may find; None: all."""

    base: NDArray[np.bool_] | None
    tail: NDArray[np.bool_] | None


class CodeTable:
    """Codes by seq, brought up to date from the store."""

    def __init__(self, folder: Path, *, bits: int) -> None:
        self.path = folder / CODES_FILE
        self.width = bits // 8
        self._take(CodeRows(np.zeros(0, dtype=np.int64), np.zeros((0, self.width), dtype=np.uint8)))
        self.stamp: Stamp | None = None
        found = read_code_file(self.path, width=self.width)
        if found is not None:
            self._take(found.rows)
            self.stamp = found.stamp
        self._file_stamp = self.stamp
        self._lists_changed = _changed(self.path.with_name(LISTS_FILE))

    def _take(self, base: CodeRows) -> None:
        self.base = base
        self.alive: NDArray[np.bool_] | None = None  # which of the base are still there; None: all
        self.tail = CodeRows(base.seqs[:0], base.codes[:0])
        self._lists: IVFSnapshot | None = None
        self._masks: dict[str, Masks] = {}

    def __len__(self) -> int:
        """Count the documents that have a code."""
        gone = 0 if self.alive is None else len(self.alive) - np.count_nonzero(self.alive)
        return len(self.base.seqs) - int(gone) + len(self.tail.seqs)

    # Keeping up with the store

    def refresh(self, store: Store, state: State) -> None:
        """Read from the store what this table does not have yet."""
        self._follow_lists(store, state)
        if self.stamp is not None and self.stamp.token == state.token:
            return
        self._masks.clear()
        last_seq = state.next_seq - 1
        before, self.stamp = self.stamp, None  # interrupted halfway, the next call reads everything
        if before is not None and store.remembers(before.write, before.token):
            new = store.code_rows(after=before.last_seq)
            changed = store.changed_since(before.write)
            changed = changed[changed <= before.last_seq]
            self._drop(changed)
            self._insert([new, store.code_rows_of(changed)] if len(changed) else [new])
        else:
            self._take(store.code_rows())
            self._file_stamp = None  # the file, and the lists beside it, are those of other codes
        self.stamp = Stamp(state.write, state.token, last_seq)

    def _drop(self, seqs: NDArray[np.int64]) -> None:
        if not len(seqs):
            return
        rows = _rows_of(self.base.seqs, seqs)
        if len(rows):
            alive = np.ones(len(self.base.seqs), dtype=bool) if self.alive is None else self.alive.copy()
            alive[rows] = False
            self.alive = alive
        stays = np.ones(len(self.tail.seqs), dtype=bool)
        stays[_rows_of(self.tail.seqs, seqs)] = False
        self.tail = CodeRows(self.tail.seqs[stays], self.tail.codes[stays])

    def _insert(self, parts: list[CodeRows]) -> None:
        seqs = np.concatenate([self.tail.seqs, *(part.seqs for part in parts)])
        codes = np.concatenate([self.tail.codes, *(part.codes for part in parts)])
        order = np.argsort(seqs)
        self.tail = CodeRows(seqs[order], codes[order])

    @property
    def needs_saving(self) -> bool:
        """Whether the code file is so far behind that opening the collection takes long."""
        if self.stamp is None or self.stamp == self._file_stamp:
            return False
        if self._file_stamp is None or self.stamp.write - self._file_stamp.write > MAX_WRITES:
            return True
        gone = 0 if self.alive is None else len(self.alive) - int(np.count_nonzero(self.alive))
        changes = gone + len(self.tail.seqs)
        return changes > max(MIN_CHANGES, CHANGED_FRACTION * len(self.base.seqs))

    def _follow_lists(self, store: Store, state: State) -> None:
        """Let go of lists that another process has made anew, and take up the code file they are for."""
        changed = _changed(self.path.with_name(LISTS_FILE))
        if changed != self._lists_changed:
            self._lists_changed, self._lists = changed, None
            self.adopt(store, state)

    def adopt(self, store: Store, state: State) -> None:
        """Take up what another process has written to the code file since, and its lists with it."""
        found = read_code_file(self.path, width=self.width)
        if found is None or found.stamp == self._file_stamp:
            return
        if found.stamp.write > state.write:
            self._lists_changed = None  # to be looked at again by whoever sees that write
        elif store.remembers(found.stamp.write, found.stamp.token):
            self._take(found.rows)
            self.stamp = self._file_stamp = found.stamp
            self.refresh(store, state)

    def save(self) -> None:
        """Write the code file anew and scan that from now on."""
        if self.stamp is None:
            raise InputError("a table that has not read its store has nothing to save: call refresh first")
        if self.stamp == self._file_stamp:
            return
        lists, old_seqs, alive, rows = self.lists(), self.base.seqs, self.alive, self.rows()
        write_code_file(self.path, self.stamp, [rows])
        self._file_stamp = self.stamp
        found = read_code_file(self.path, width=self.width)
        # Another process may have written a newer file in the meantime; what is in memory is right as well.
        self._take(found.rows if found is not None and found.stamp == self.stamp else rows)
        if lists is not None:
            self._keep_lists(move_lists(lists, old_seqs, alive, self.base))

    # Fast searches

    def lists(self) -> IVFSnapshot | None:
        """Return the lists of the base; None where none were made for it."""
        if self._lists is None and self._file_stamp is not None:
            self._lists = read_lists(self.path.with_name(LISTS_FILE), token=self._file_stamp.token)
        return self._lists

    def build_index(self, *, k: int, recall: float) -> IVFSnapshot:
        """Make lists of the base, in the place of older ones."""
        lists = build_index(self.base.codes, k=k, recall=recall)
        self._keep_lists(lists)
        return lists

    def _keep_lists(self, lists: IVFSnapshot) -> None:
        if self._file_stamp is None:
            raise InputError("a table without a code file has no place for lists: call save first")
        self._lists = lists
        path = self.path.with_name(LISTS_FILE)
        write_lists(path, lists, token=self._file_stamp.token)
        self._lists_changed = _changed(path)

    # Looking things up

    def rows(self) -> CodeRows:
        """Return all codes by seq, as one part."""
        base = self.base
        if self.alive is not None:
            base = CodeRows(base.seqs[self.alive], base.codes[self.alive])
        if not len(self.tail.seqs):
            return base
        seqs, codes = (
            np.concatenate([base.seqs, self.tail.seqs]),
            np.concatenate([base.codes, self.tail.codes]),
        )
        order = np.argsort(seqs, kind="stable")
        return CodeRows(seqs[order], codes[order])

    def codes_of(self, seqs: Sequence[int]) -> CodeRows:
        """Return the codes that these documents have, by seq."""
        wanted = np.unique(np.asarray(seqs, dtype=np.int64))
        base, tail = _rows_of(self.base.seqs, wanted), _rows_of(self.tail.seqs, wanted)
        if self.alive is not None:
            base = base[self.alive[base]]
        if not len(tail):
            return CodeRows(self.base.seqs[base], self.base.codes[base])
        found = np.concatenate([self.base.seqs[base], self.tail.seqs[tail]])
        order = np.argsort(found)
        codes = np.concatenate([self.base.codes[base], self.tail.codes[tail]])
        return CodeRows(found[order], codes[order])

    def masks(self, name: str, allowed: Callable[[], NDArray[np.int64]]) -> Masks:
        """Return masks that let through what `allowed` returns, seqs in ascending order.

        The last few are remembered by their names for as long as nothing is written.
        """
        if name not in self._masks:
            if len(self._masks) >= REMEMBERED_MASKS:
                self._masks.pop(next(iter(self._masks)))
            seqs = allowed()
            base = _mask(self.base.seqs, seqs)
            base = base if self.alive is None else base & self.alive
            self._masks[name] = Masks(base, _mask(self.tail.seqs, seqs))
        return self._masks[name]

    def scan(
        self,
        queries: NDArray[np.uint8],
        *,
        k: int,
        radius: int | None = None,
        masks: Masks | None = None,
        lists: IVFSnapshot | None = None,
    ) -> list[list[Match]]:
        """Return the nearest documents of each query (queries, bytes), ordered by (distance, seq).

        Args:
            queries: packed codes.
            k: most documents to return.
            radius: the largest distance to return.
            masks: which documents to look at; all by default.
            lists: the lists to look into, where not all codes are to be read.
        """
        found: list[list[Match]] = [[] for _ in queries]
        masks = masks or Masks(self.alive, None)
        for part, mask in ((self.base, masks.base), (self.tail, masks.tail)):
            if not len(part.seqs):  # as the tail is most of the time
                continue
            if lists is not None and part is self.base:
                look, probes = lists.clusters.search, lists.probes
                centroids = scan_many(queries, lists.clusters.centroids, k=probes)
                answers = [
                    look(
                        query,
                        part.codes,
                        k=k,
                        n_probe=probes,
                        allowed=mask,
                        radius=radius,
                        nearest_lists=near.rows,
                    )
                    for query, near in zip(queries, centroids, strict=True)
                ]
            else:
                answers = scan_many(queries, part.codes, k=k, allowed=mask, radius=radius)
            for places, hits in zip(found, answers, strict=True):
                places += map(Match, hits.distances.tolist(), part.seqs[hits.rows].tolist())
        return [sorted(places)[:k] for places in found]


def _changed(path: Path) -> int | None:
    """Return when a file was last written; None where there is none."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return None


def _mask(seqs: NDArray[np.int64], allowed: NDArray[np.int64]) -> NDArray[np.bool_]:
    mask = np.zeros(len(seqs), dtype=bool)
    mask[_rows_of(seqs, allowed)] = True
    return mask


def _rows_of(seqs: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where the wanted seqs stand in ascending seqs, leaving out those that do not occur."""
    if not len(seqs):
        return np.zeros(0, dtype=np.int64)
    places = np.searchsorted(seqs, wanted)
    places[places == len(seqs)] = 0
    return np.asarray(places[seqs[places] == wanted], dtype=np.int64)
