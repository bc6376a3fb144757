"""Shared parts of all readers: decoding lines, progress, duplicate ids, and records to documents."""

from __future__ import annotations

import gzip
import io
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

from snuh.corpus.document import (
    Document,
    FieldNames,
    FractionCallback,
    MissingFieldError,
    RecordError,
    TextSource,
    to_document,
)
from snuh.errors import InputError, import_extra
from snuh.text import quote, sanitize

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_RECENT_IDS = 65_536
MAX_RECORD_BYTES = 1 << 28  # of a line, or of a file in a folder
DOCUMENTS_PER_REPORT = 256
BOM = b"\xef\xbb\xbf"
GZIP_MAGIC, ZSTD_MAGIC, ZIP_MAGIC = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK\x03\x04"

# (line for messages, default id, fields); Any: values of any JSON type.
Record: TypeAlias = tuple[int, int, dict[str, Any]]
Records: TypeAlias = Generator[Record, None, None]


class SeenIds:
    """Detects duplicate ids by their 64-bit hashes, in eight bytes per id.

    Recent ids are compared immediately, older ones in blocks. Two ids may share a hash, so the caller has to
    verify reported hashes with the ids themselves.
    """

    def __init__(self, *, max_recent: int = MAX_RECENT_IDS) -> None:
        """Compare each id immediately with up to `max_recent` ids before it."""
        self._limit = max_recent
        self._recent: set[int] = set()
        self._runs: list[NDArray[np.int64]] = []  # sorted, each larger than the next

    def add(self, doc_id: str) -> frozenset[int]:
        """Add an id and return the duplicate hashes detected by now, usually none."""
        digest = hash(doc_id)
        if digest in self._recent:
            return frozenset((digest,))
        self._recent.add(digest)
        return self.check() if len(self._recent) >= self._limit else frozenset()

    def check(self) -> frozenset[int]:
        """Compare the recent ids with all before them and return the duplicate hashes."""
        if not self._runs and len(self._recent) < self._limit:
            return frozenset()
        import numpy as np

        block = np.sort(np.fromiter(self._recent, dtype=np.int64, count=len(self._recent)))
        self._recent.clear()
        repeated: set[int] = set()
        for run in self._runs:
            indices = np.minimum(np.searchsorted(run, block), run.size - 1)
            repeated.update(block[run[indices] == block].tolist())
        self._runs.append(block)
        while len(self._runs) > 1 and self._runs[-2].size <= self._runs[-1].size:
            merged = np.concatenate([self._runs.pop(), self._runs.pop()])
            merged.sort()
            self._runs.append(merged)
        return frozenset(repeated)


class ProgressSource(TextSource):
    """Wraps a source to report the progress of each iteration to a callback of its own."""

    def __init__(self, source: TextSource, *callbacks: FractionCallback) -> None:
        """Report the n-th iteration to the n-th callback; there may be more iterations."""
        self.name = source.name
        self._source = source
        self._callbacks = iter(callbacks)

    def documents(self, progress: FractionCallback | None = None) -> Iterator[Document]:
        """Yield the documents of the wrapped source."""
        yield from self._source.documents(next(self._callbacks, progress))


def _nothing_read() -> float:
    return 0.0


@dataclass(slots=True)
class Meter:
    """The progress of a reader, which sets `fraction` once the file is open."""

    fraction: Callable[[], float] = _nothing_read


@contextmanager
def open_bytes(path: Path, meter: Meter) -> Iterator[io.BufferedIOBase]:
    """Open a file, decompressing gzip, zstd and zip (detected by magic bytes), and set up the meter."""
    with path.open("rb") as raw, ExitStack() as stack:
        size = max(os.fstat(raw.fileno()).st_size, 1)
        # In a compressed file this is the position in the compressed bytes.
        meter.fraction = lambda: min(1.0, raw.tell() / size)
        start = raw.peek(4)[:4]
        if start.startswith(GZIP_MAGIC):
            yield _buffered(gzip.GzipFile(fileobj=raw))
        elif start == ZSTD_MAGIC:
            yield _buffered(stack.enter_context(_zstd(raw)))
        elif start == ZIP_MAGIC:
            archive = stack.enter_context(zipfile.ZipFile(raw))
            yield _buffered(stack.enter_context(archive.open(zip_member(path))))
        else:
            yield raw


def _buffered(stream: Any) -> io.BufferedReader:  # Any: a stream of bytes
    # Decompressing streams split lines in Python; the C buffer around them is several times faster.
    return io.BufferedReader(stream, buffer_size=1 << 17)


def _zstd(raw: BinaryIO) -> Any:  # a stream of bytes; Python has zstd in its standard library since 3.14
    pa = import_extra("pyarrow")
    return pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")


def zip_member(path: Path) -> str:
    """Return the name of the only file in a zip archive; InputError if it holds none or several."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = [member for member in archive.infolist() if not member.is_dir()]
    except (OSError, zipfile.BadZipFile) as error:
        raise InputError(f"{path.name}: not a zip archive, or a damaged one ({error})") from None
    members = [member for member in members if not member.filename.startswith("__MACOSX/")]
    if len(members) != 1:
        raise InputError(
            f"{path.name}: expected an archive of one file, got {len(members)}: "
            "unpack it, and give a file or a folder"
        )
    if members[0].flag_bits & 1:
        raise InputError(f"{path.name} is encrypted: unpack it first")
    return members[0].filename


def text_lines(path: Path, meter: Meter) -> Generator[tuple[int, str], None, None]:
    """Yield (line number from 1, line with its ending); a byte order mark at the start is dropped."""
    number = 0
    try:
        with open_bytes(path, meter) as stream:
            # The limit keeps a file without line breaks from filling the memory.
            for number, line in enumerate(iter(partial(stream.readline, MAX_RECORD_BYTES + 1), b""), start=1):
                if len(line) > MAX_RECORD_BYTES:
                    raise InputError(
                        f"{path.name} line {number}: has more than {MAX_RECORD_BYTES >> 20} MiB: split it"
                    )
                if number == 1:
                    line = line.removeprefix(BOM)
                try:
                    text = line.decode()
                except UnicodeDecodeError as error:
                    raise not_utf8(error, f"{path.name} line {number}") from None
                yield number, text
    except (EOFError, gzip.BadGzipFile, zipfile.BadZipFile, zlib.error) as error:
        raise _damaged(path, number + 1, error) from None
    except OSError as error:
        if error.strerror is None:  # of zstd
            raise _damaged(path, number + 1, error) from None
        raise InputError(f"cannot read {path}: {error.strerror}") from None


def _damaged(path: Path, line: int, error: Exception) -> InputError:
    return InputError(
        f"{path.name} line {line}: the compressed file is truncated or damaged ({error}): "
        "get a whole copy of it"
    )


def not_utf8(error: UnicodeDecodeError, location: str) -> InputError:
    """Return an error that names the first invalid byte of a line."""
    before = error.object[: error.start]
    column = error.start - (before.rfind(b"\n") + 1) + 1
    return InputError(
        f"{location}: byte {column} (0x{error.object[error.start]:02x}) is not valid UTF-8: "
        "convert the file to UTF-8"
    )


Reader: TypeAlias = Callable[[Path, Meter], Records]


@dataclass(frozen=True, slots=True)
class Format:
    """A file format: the reader of its records, the unit of locations in messages, a hint on its fields.

    With `separators`, a text in the labels field is split into several labels.
    """

    read: Reader
    unit: str = "line"
    hint: str = ""
    separators: re.Pattern[str] | None = None


class RecordSource(TextSource):
    """The documents of one file."""

    def __init__(
        self, path: Path, form: Format, *, name: str | None = None, fields: FieldNames | None = None
    ) -> None:
        """Read `path` in the given format, with text and id in the named fields."""
        self.name = sanitize(name or path.name)
        self._path = path
        self._format = form
        self._fields = fields or FieldNames()

    def documents(self, progress: FractionCallback | None = None) -> Iterator[Document]:
        """Yield the documents in the order of the file; ids are checked to be unique on the way."""
        meter = Meter()
        seen = SeenIds()
        count = 0
        for _, document in self._read(meter):
            if repeated := seen.add(document.id):
                self._refuse(repeated)
            if progress is not None and count % DOCUMENTS_PER_REPORT == 0:
                progress(meter.fraction())
            count += 1
            yield document
        if repeated := seen.check():
            self._refuse(repeated)
        if not count:
            raise InputError(f"{self._path.name}: there are no documents in it")
        if progress is not None:
            progress(1.0)

    def _read(self, meter: Meter) -> Iterator[tuple[int, Document]]:
        separators = self._format.separators
        # Close explicitly, so that the file is released even if the consumer stops early.
        with closing(self._format.read(self._path, meter)) as records:
            for line, number, fields in records:
                if separators is not None and isinstance(labels := fields.get(self._fields.labels), str):
                    fields[self._fields.labels] = separators.split(labels)
                try:
                    document = to_document(fields, number, self._fields)
                except RecordError as error:
                    hint = self._format.hint if isinstance(error, MissingFieldError) else ""
                    location = f"{self._path.name} {self._format.unit} {line}"
                    raise InputError(f"{location}: {error}{hint}") from None
                yield line, document

    def _refuse(self, repeated: frozenset[int]) -> None:
        # Read again to report both lines, and to accept different ids with equal hashes.
        first: dict[str, int] = {}
        for line, document in self._read(Meter()):
            if hash(document.id) not in repeated:
                continue
            if document.id in first:
                unit = self._format.unit
                raise InputError(
                    f"{self._path.name} {unit} {line}: the id {quote(document.id)} is already used "
                    f"on {unit} {first[document.id]}: ids must be unique"
                )
            first[document.id] = line
