"""Output files of commands: documents (`snuh export`), codes (`snuh encode`), duplicates (`snuh dedup`).

The suffix of a path selects the format. A file appears under its name once it is complete.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from snuh.codes import code_column
from snuh.corpus import Document
from snuh.corpus.document import JSON, to_fields
from snuh.errors import InputError, suggest
from snuh.io import atomic_write
from snuh.text import quote

Record: TypeAlias = dict[str, Any]  # Any: JSON values
Codes: TypeAlias = NDArray[np.uint8]  # (documents, bytes)
ReadDocuments: TypeAlias = Callable[[], Iterable[Document]]
WriteDocument: TypeAlias = Callable[[Document, str | None], None]
WriteCodes: TypeAlias = Callable[[Sequence[str], Codes], None]

DOCUMENT_SUFFIXES = (".jsonl", ".jsonl.gz", ".csv", ".parquet")
CODE_SUFFIXES = (".parquet", ".npy", ".jsonl")
DUPLICATE_SUFFIXES = (".jsonl", ".csv")
IDS_SUFFIX = ".ids.json"

ROWS_PER_BATCH = 1_000
MAX_EXACT_FLOAT = 2**53  # integers up to here have an exact float
INT64_RANGE = range(-(2**63), 2**63)


def check_suffix(path: Path, suffixes: Sequence[str], *, what: str) -> str:
    """Return the one of `suffixes` that the path ends in; InputError, naming `what`, if there is none."""
    for suffix in suffixes:
        if path.name.lower().endswith(suffix):
            return suffix
    near = suggest(path.suffix, suffixes)
    raise InputError(f"{path}: {what} are written to files ending in {', '.join(suffixes)}{near}")


@dataclass(frozen=True, slots=True)
class Layout:
    """The field names under which the parts of a document are written."""

    text: str = "text"
    id: str = "id"
    has_codes: bool = False

    @property
    def reserved(self) -> tuple[str, ...]:
        """The field names that metadata must not use."""
        return (self.id, self.text, "labels", "split", *(["code"] if self.has_codes else []))

    def record(
        self, document: Document, code: str | None, fields: Mapping[str, JSON] | None = None
    ) -> Record:
        """Return a document as named fields; `fields` are those of its metadata, if they differ."""
        fields = document.metadata if fields is None else fields
        if taken := [name for name in self.reserved if name in document.metadata]:
            raise InputError(
                f"the document {quote(document.id)} has a metadata field {quote(taken[0])}: choose another "
                "name for the text or the id with --text-field and --id-field, or omit --codes"
            )
        # Labels are written even if empty: a metadata field "label" would be read as labels otherwise.
        values = (document.id, document.text, list(document.labels), document.split, code)
        return {**dict(zip(self.reserved, values, strict=False)), **fields}


def document_writer(
    path: Path, layout: Layout, documents: ReadDocuments
) -> AbstractContextManager[WriteDocument]:
    """Return a context manager that yields a function to write a document and its code.

    Args:
        path: the output file.
        layout: the field names.
        documents: returns the documents to be written; tables read their metadata for the columns.
    """
    match check_suffix(path, DOCUMENT_SUFFIXES, what="documents"):
        case ".csv":
            return _documents_to_csv(path, layout, documents)
        case ".parquet":
            return _documents_to_parquet(path, layout, documents)
        case _:
            return _documents_to_jsonl(path, layout)


@contextmanager
def _documents_to_jsonl(path: Path, layout: Layout) -> Iterator[WriteDocument]:
    with _jsonl_file(path) as write_record:

        def write(document: Document, code: str | None) -> None:
            record = layout.record(document, code, to_fields(document.metadata))
            if document.split is None:
                del record["split"]
            write_record(record)

        yield write


@contextmanager
def _documents_to_csv(path: Path, layout: Layout, documents: ReadDocuments) -> Iterator[WriteDocument]:
    with _csv_file(path, [*layout.reserved, *_metadata_types(documents())]) as write_record:

        def write(document: Document, code: str | None) -> None:
            for label in document.labels:
                if ";" in label or "|" in label:
                    raise InputError(
                        f"{path}: the label {quote(label)} contains ; or |, which separate labels in .csv: "
                        "write .jsonl or .parquet"
                    )
            record = layout.record(document, code) | {"labels": ";".join(document.labels)}
            with _reporting_changed_fields(path):
                write_record({name: _cell(value) for name, value in record.items()})

        yield write


@contextmanager
def _documents_to_parquet(path: Path, layout: Layout, documents: ReadDocuments) -> Iterator[WriteDocument]:
    import pyarrow as pa

    types = {name: _arrow_type(kinds) for name, kinds in _metadata_types(documents()).items()}
    json_columns = {name for name, kind in types.items() if kind is None}
    reserved = [
        (name, pa.list_(pa.string()) if name == "labels" else pa.string()) for name in layout.reserved
    ]
    schema = pa.schema([*reserved, *((name, kind or pa.string()) for name, kind in types.items())])
    rows: list[Record] = []
    with _parquet_file(path, schema) as write_table:

        def flush() -> None:
            with _reporting_changed_fields(path):
                write_table(pa.Table.from_pylist(rows, schema=schema))
            rows.clear()

        def write(document: Document, code: str | None) -> None:
            record = layout.record(document, code)
            for name in json_columns & record.keys():
                record[name] = None if record[name] is None else _cell(record[name])
            rows.append(record)
            if len(rows) >= ROWS_PER_BATCH:
                flush()

        yield write
        flush()


def code_files(path: Path) -> tuple[Path, ...]:
    """Return the files that `code_writer` writes; InputError if it would replace a file of another kind."""
    if check_suffix(path, CODE_SUFFIXES, what="codes") != ".npy":
        return (path,)
    ids = ids_path(path)
    if os.path.exists(ids) and not _is_ids_file(ids):
        raise InputError(
            f'cannot write {path}: its ids go to {ids}, which exists and was not made by "snuh encode": '
            "choose another name, or move that file"
        )
    return path, ids


def ids_path(path: Path) -> Path:
    """Return the file with the ids of a .npy file: codes.ids.json for codes.npy."""
    return path.with_suffix(IDS_SUFFIX)


def code_writer(path: Path, *, bits: int) -> AbstractContextManager[WriteCodes]:
    """Return a context manager that yields a function to write ids and their codes."""
    match check_suffix(path, CODE_SUFFIXES, what="codes"):
        case ".npy":
            return _codes_to_npy(path, bits // 8)
        case ".parquet":
            return _codes_to_parquet(path, bits // 8)
        case _:
            return _codes_to_jsonl(path)


@contextmanager
def _codes_to_jsonl(path: Path) -> Iterator[WriteCodes]:
    """One object per line: {"id": ..., "code": hexadecimal digits}."""
    with _jsonl_file(path) as write_record:

        def write(ids: Sequence[str], codes: Codes) -> None:
            for doc_id, code in zip(ids, codes, strict=True):
                write_record({"id": doc_id, "code": code.tobytes().hex()})

        yield write


@contextmanager
def _codes_to_parquet(path: Path, width: int) -> Iterator[WriteCodes]:
    """The columns id (string) and code (fixed-size binary)."""
    import pyarrow as pa

    schema = pa.schema([("id", pa.string()), ("code", pa.binary(width))])
    with _parquet_file(path, schema) as write_table:

        def write(ids: Sequence[str], codes: Codes) -> None:
            write_table(pa.table([pa.array(ids, pa.string()), code_column(codes)], schema=schema))

        yield write


@contextmanager
def _codes_to_npy(path: Path, width: int) -> Iterator[WriteCodes]:
    """A uint8 array (documents, bits / 8), and a second file with the ids as a JSON list."""
    count = 0
    with (
        atomic_write(path) as temporary,
        atomic_write(ids_path(path)) as temporary_ids,
        temporary.open("wb") as file,
        temporary_ids.open("w", encoding="utf-8", newline="\n") as ids_file,
    ):
        _write_npy_header(file, 0, width)

        def write(ids: Sequence[str], codes: Codes) -> None:
            nonlocal count
            file.write(codes.tobytes())
            for doc_id in ids:
                ids_file.write(("[\n" if count == 0 else ",\n") + json.dumps(doc_id, ensure_ascii=False))
                count += 1

        yield write
        ids_file.write("\n]\n" if count else "[]\n")
        # NumPy pads the header, so the number of rows can be filled in at the end.
        file.seek(0)
        _write_npy_header(file, count, width)


def _write_npy_header(file: IO[bytes], rows: int, width: int) -> None:
    header = {"descr": "|u1", "fortran_order": False, "shape": (rows, width)}
    np.lib.format.write_array_header_1_0(file, header)


def _is_ids_file(path: Path) -> bool:
    """Tell whether a file looks like a list of `_codes_to_npy`: one string per line between brackets."""
    try:
        with path.open("rb") as file:
            if file.readline(4) not in (b"[\n", b"[]\n"):
                return False
            return all(line.startswith(b'"') or line == b"]\n" for line in file)
    except OSError:
        return False


def write_records(path: Path, records: Iterable[Record], *, columns: Sequence[str]) -> None:
    """Write records to a .csv file with these columns, or to JSON lines."""
    is_csv = path.suffix.lower() == ".csv"
    with _csv_file(path, columns) if is_csv else _jsonl_file(path) as write:
        for record in records:
            write(record)


@contextmanager
def _jsonl_file(path: Path) -> Iterator[Callable[[Record], object]]:
    with atomic_write(path) as temporary, _open_text(temporary) as file:
        yield lambda record: file.write(json.dumps(record, ensure_ascii=False) + "\n")


def _open_text(path: Path) -> IO[str]:
    if path.name.lower().endswith(".gz"):
        return gzip.open(path, "wt", encoding="utf-8", newline="\n")
    return path.open("w", encoding="utf-8", newline="\n")


@contextmanager
def _csv_file(path: Path, columns: Sequence[str]) -> Iterator[Callable[[Record], object]]:
    with atomic_write(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        # The default line terminator, \r\n, also makes csv quote a text that contains either character.
        writer = csv.DictWriter(file, columns, restval="", extrasaction="raise")
        writer.writeheader()
        yield writer.writerow


@contextmanager
def _parquet_file(path: Path, schema: Any) -> Iterator[Callable[[Any], None]]:  # pyarrow has no type stubs
    import pyarrow.parquet as pq

    with atomic_write(path) as temporary, pq.ParquetWriter(temporary, schema) as file:
        yield file.write_table


def _cell(value: Any) -> str:  # Any: a JSON value
    """Return text for a table cell: strings unchanged, null as an empty cell, anything else as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@contextmanager
def _reporting_changed_fields(path: Path) -> Iterator[None]:
    try:
        yield
    except ValueError as error:  # includes Arrow's errors
        raise InputError(
            f"{path}: the collection changed during the export: run it again ({error})"
        ) from error


def _metadata_types(documents: Iterable[Document]) -> dict[str, set[str]]:
    """Return the types of values that each metadata field has, in order of appearance."""
    types: dict[str, set[str]] = {}
    for document in documents:
        for name, value in document.metadata.items():
            types.setdefault(name, set()).update(_value_type(value))
    return types


def _value_type(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, bool | str | float):
        return (type(value).__name__,)
    if isinstance(value, int) and value in INT64_RANGE:
        return ("int",) if abs(value) <= MAX_EXACT_FLOAT else ("long",)
    return ("other",)


def _arrow_type(types: set[str]) -> Any:  # a pyarrow type, which has no stubs
    """Return the type of a column; None if its values need JSON text."""
    import pyarrow as pa

    for allowed, arrow_type in (
        ({"str"}, pa.string()),
        ({"bool"}, pa.bool_()),
        ({"int", "long"}, pa.int64()),
        ({"int", "float"}, pa.float64()),
    ):
        if types <= allowed:
            return arrow_type
    return None
