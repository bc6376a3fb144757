"""The file of codes that searches scan: made from the store, checked when it is opened, safe to delete.

A line of JSON, padded to `DATA_AT` bytes, then the seqs as int64, then the codes; both are memory-mapped.
"""

from __future__ import annotations

import json
import mmap
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from snuh.collection.rows import CodeRows
from snuh.storage import atomic_write

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
