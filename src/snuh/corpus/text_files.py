"""Readers of text formats: JSON lines, CSV and TSV, plain text, standard input and folders of text files."""

from __future__ import annotations

import csv
import itertools
import json
import os
import re
import sys
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO

from snuh.corpus.document import JSON, Document, FieldNames, FractionCallback, TextSource, describe
from snuh.corpus.reader import (
    BOM,
    MAX_RECORD_BYTES,
    Format,
    Meter,
    Records,
    RecordSource,
    not_utf8,
    text_lines,
)
from snuh.errors import InputError
from snuh.text import quote, sanitize

# The default of the csv module rejects fields over 128 KiB.
FIELD_LIMIT = MAX_RECORD_BYTES
HEADER_HINT = "; the first line of the file must hold the column names"
LABEL_SEPARATORS = re.compile(r"[;|]")
DELIMITERS = (",", ";", "\t", "|")
STDIN_NAME = "standard input"
CHUNK_BYTES = 1 << 16
TEXT_SUFFIXES = (".txt", ".md", ".rst")
DOCUMENTS_PER_REPORT = 256


# NaN, which Python writes for a missing value, is not valid JSON; as metadata it becomes null.
_DECODER = json.JSONDecoder(parse_constant=float)


def read_jsonl(path: Path, meter: Meter) -> Records:
    """Yield the object of each line, skipping blank lines; the default id is the line number."""
    for number, line in text_lines(path, meter):
        try:
            fields = _DECODER.decode(line)
        except (ValueError, RecursionError) as error:
            if line.isspace() or not line:
                continue
            raise InputError(f"{path.name} line {number}: {_reason(error)}") from None
        if type(fields) is not dict:
            raise InputError(f"{path.name} line {number}: expected a JSON object, got {describe(fields)}")
        if "\\ud" in line or "\\uD" in line:
            _check_surrogates(fields, f"{path.name} line {number}")
        yield number, number, fields


def _check_surrogates(fields: object, location: str) -> None:
    # JSON can hold a lone surrogate such as "\\ud83d", which UTF-8 cannot encode.
    try:
        json.dumps(fields, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        surrogate = f"\\u{ord(error.object[error.start]):04x}"
        raise InputError(
            f"{location}: holds half a character ({surrogate}): remove it, or write the whole character"
        ) from None


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        message = error.msg.removesuffix(" at")  # as in "Unterminated string starting at"
        return f"not valid JSON ({message} at character {error.pos + 1})"
    if isinstance(error, RecursionError):
        return "not valid JSON (nested too deeply)"
    # The only other ValueError: Python rejects integers that take long to convert.
    limit = sys.get_int_max_str_digits()
    return f"holds a number of more than {limit:,} digits: shorten it, or write it as a string"


def read_json(path: Path, meter: Meter) -> Records:
    """Yield the objects of an array, which is read as a whole, or those of JSON lines."""
    with closing(text_lines(path, meter)) as lines:
        start = next((line for _, line in lines if line.strip()), "")
    if not start.lstrip().startswith("["):
        yield from read_jsonl(path, meter)
        return
    text = "".join(line for _, line in text_lines(path, meter))
    try:
        array = _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path.name}: {_reason(error)}") from None
    number = 0
    meter.fraction = lambda: number / len(array)  # the file is closed
    for number, fields in enumerate(array, start=1):
        if type(fields) is not dict:
            raise InputError(f"{path.name} record {number}: expected a JSON object, got {describe(fields)}")
        _check_surrogates(fields, f"{path.name} record {number}")
        yield number, number, fields


def read_csv(path: Path, meter: Meter) -> Records:
    """Yield the rows of a .csv file; the header determines the delimiter."""
    return _read_table(path, meter, None)


def read_tsv(path: Path, meter: Meter) -> Records:
    """Yield the rows of a .tsv file; fields may be quoted as in .csv."""
    return _read_table(path, meter, "\t")


def _detect_delimiter(header: str, quotechar: str) -> str:
    """Return the delimiter that makes the most columns; a comma if none makes two."""

    def columns(delimiter: str) -> int:
        return len(next(csv.reader([header], delimiter=delimiter, quotechar=quotechar), []))

    return max(DELIMITERS, key=columns)  # the first of several


def _read_table(path: Path, meter: Meter, delimiter: str | None) -> Records:
    """Yield the rows by column name."""
    csv.field_size_limit(max(FIELD_LIMIT, csv.field_size_limit()))
    lines = (line for _, line in text_lines(path, meter))
    first = next(lines, "")
    quotechar = "'" if first.startswith("'") else '"'
    # strict: otherwise an unclosed quote would make the rest of the file one field.
    reader = csv.reader(
        itertools.chain([first] if first else [], lines),
        delimiter=delimiter or _detect_delimiter(first, quotechar),
        quotechar=quotechar,
        strict=True,
    )
    header: list[str] | None = None
    number = 0
    line = 1
    try:
        for row in reader:
            if header is None:
                header = _check_header(row, f"{path.name} line {line}")
            elif row:
                number += 1
                yield line, number, _fields(header, row, f"{path.name} line {line}")
            line = reader.line_num + 1
    except csv.Error as error:
        raise InputError(
            f"{path.name} line {line}: not a valid row ({error}): "
            "a field with quotes in it must be quoted, and its quotes doubled"
        ) from None


def _check_header(row: list[str], location: str) -> list[str]:
    names = [name.strip() for name in row]
    if not any(names):
        raise InputError(f"{location}: expected the column names, got a blank line")
    repeated = [name for name in names if name and names.count(name) > 1]
    if repeated:
        raise InputError(f"{location}: the column {quote(repeated[0])} appears twice: rename one")
    return names


def _fields(header: list[str], row: list[str], location: str) -> dict[str, Any]:
    if len(row) != len(header):
        raise InputError(f"{location}: expected {len(header)} fields as in the header, got {len(row)}")
    fields: dict[str, Any] = dict(zip(header, row, strict=True))
    # An unnamed column is the row index that some tools write.
    fields.pop("", None)
    return fields


def read_plain(path: Path, meter: Meter) -> Records:
    """Yield each non-blank line as a text; the id is the line number."""
    for number, line in text_lines(path, meter):
        if not line.isspace() and line:
            yield number, number, {"text": line.rstrip("\r\n")}


class StdinSource(TextSource):
    """Standard input: JSON lines if the first non-blank line starts an object, otherwise one text per line.

    The first iteration copies the input to a temporary file, so that it can be read repeatedly; the file is
    deleted with this object.
    """

    def __init__(self, *, stream: BinaryIO | None = None, fields: FieldNames | None = None) -> None:
        """Read `stream`; standard input by default."""
        self.name = STDIN_NAME
        self._stream = stream
        self._fields = fields or FieldNames()
        self._source: RecordSource | None = None

    def documents(self, progress: FractionCallback | None = None) -> Iterator[Document]:
        """Yield the documents once all input has been read."""
        if self._source is None:
            self._source = self._spool()
        yield from self._source.documents(progress)

    def _spool(self) -> RecordSource:
        # In a separate folder, the file can have the name that messages show.
        folder = tempfile.TemporaryDirectory(prefix="snuh-")
        weakref.finalize(self, folder.cleanup)
        path = Path(folder.name) / STDIN_NAME
        with path.open("wb") as file:
            stream = self._stream or _standard_input()
            # read() blocks in C until it has all bytes and delays Ctrl-C; read1() returns what is available.
            read = getattr(stream, "read1", stream.read)
            while chunk := read(CHUNK_BYTES):
                file.write(chunk)
        form = Format(read_jsonl if _holds_objects(path) else read_plain)
        if form.read is read_plain:
            self._fields.check_unused(STDIN_NAME)
        return RecordSource(path, form, fields=self._fields)


def _standard_input() -> BinaryIO:
    if sys.stdin is None:
        raise InputError("standard input is closed: pipe the documents in, or name a file")
    return sys.stdin.buffer


def _holds_objects(path: Path) -> bool:
    lines = (line.strip() for _, line in text_lines(path, Meter()))
    return next((line.startswith("{") for line in lines if line), False)


class FolderSource(TextSource):
    """The text files below a folder, sorted by path, without hidden files and folders.

    The id of a document is its relative path; the first component of a nested path is the metadata "folder".
    """

    def __init__(self, folder: Path, *, name: str | None = None) -> None:
        """Read the text files below `folder`."""
        self.name = sanitize(name or folder.resolve().name)
        self._folder = folder

    def documents(self, progress: FractionCallback | None = None) -> Iterator[Document]:
        """Yield one document per file."""
        doc_ids = sorted(_text_files(self._folder))
        if not doc_ids:
            suffixes = ", ".join(TEXT_SUFFIXES)
            raise InputError(
                f"{self._folder}: there are no text files in this folder (looked for {suffixes})"
            )
        for count, doc_id in enumerate(doc_ids):
            if progress is not None and count % DOCUMENTS_PER_REPORT == 0:
                progress(count / len(doc_ids))
            yield self._document(doc_id)
        if progress is not None:
            progress(1.0)

    def _document(self, doc_id: str) -> Document:
        try:
            with (self._folder / doc_id).open("rb") as file:
                data = file.read(MAX_RECORD_BYTES + 1)
        except OSError as error:
            raise InputError(f"cannot read {doc_id}: {error.strerror}") from None
        if len(data) > MAX_RECORD_BYTES:
            raise InputError(f"{doc_id} has more than {MAX_RECORD_BYTES >> 20} MiB: split it")
        top, _, rest = doc_id.partition("/")
        metadata: dict[str, JSON] = {"folder": top} if rest else {}
        return Document(doc_id, _text(data, doc_id), metadata=metadata)


def _text(data: bytes, doc_id: str) -> str:
    data = data.removeprefix(BOM)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        raise not_utf8(error, f"{doc_id} line {number}") from None


def _text_files(folder: Path) -> Iterator[str]:
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            if name.startswith(".") or not name.lower().endswith(TEXT_SUFFIXES):
                continue
            path = Path(parent) / name
            if not path.exists() or path.is_file():  # neither a pipe nor a device; a broken link is reported
                yield _check_name(path.relative_to(folder).as_posix())


def _check_name(doc_id: str) -> str:
    try:
        doc_id.encode()
    except UnicodeEncodeError:
        raise InputError(f"the file name {doc_id!a} is not valid UTF-8: rename the file") from None
    return doc_id
