"""Lines of UTF-8 text from a file, compressed or not."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from snuh.errors import InputError

BOM = b"\xef\xbb\xbf"
GZIP_MAGIC = b"\x1f\x8b"


def _nothing_read() -> float:
    return 0.0


@dataclass(slots=True)
class Meter:
    """Tells how far a reading has come; the reader sets `fraction` once it knows how to measure."""

    fraction: Callable[[], float] = _nothing_read


@contextmanager
def open_bytes(path: Path, meter: Meter) -> Iterator[io.BufferedIOBase]:
    """Open a file for reading, decompressing gzip (known by its first bytes), and set up the meter."""
    with path.open("rb") as raw:
        size = max(os.fstat(raw.fileno()).st_size, 1)
        # For gzip this is the position in the compressed file.
        meter.fraction = lambda: min(1.0, raw.tell() / size)
        if raw.peek(2)[:2] != GZIP_MAGIC:
            yield raw
            return
        yield _decompressed(raw)


def _decompressed(raw: BinaryIO) -> io.BufferedReader:
    # GzipFile finds lines in Python; the C buffer around it does so several times faster.
    return io.BufferedReader(gzip.GzipFile(fileobj=raw), buffer_size=1 << 17)


def text_lines(path: Path, meter: Meter) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, line with its ending); a byte order mark at the start is dropped."""
    number = 0
    try:
        with open_bytes(path, meter) as stream:
            for number, line in enumerate(stream, start=1):
                if number == 1:
                    line = line.removeprefix(BOM)
                try:
                    text = line.decode()
                except UnicodeDecodeError as error:
                    raise not_utf8(error, f"{path.name} line {number}") from None
                yield number, text
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(
            f"{path.name} line {number + 1}: the gzip file is truncated or damaged ({error}): "
            "get a whole copy of it"
        ) from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None


def not_utf8(error: UnicodeDecodeError, place: str) -> InputError:
    """Say which byte of a line is not UTF-8."""
    before = error.object[: error.start]
    column = error.start - (before.rfind(b"\n") + 1) + 1
    return InputError(
        f"{place}: byte {column} (0x{error.object[error.start]:02x}) is not valid UTF-8: "
        "convert the file to UTF-8"
    )
