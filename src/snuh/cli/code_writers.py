"""Files of codes with their ids: .parquet, .npy or .jsonl."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from snuh.codes import code_column
from snuh.errors import InputError, suggest
from snuh.io import atomic_write

Write = Callable[[Sequence[str], NDArray[np.uint8]], None]
IDS_SUFFIX = ".ids.json"


def open_writer(path: Path, *, bits: int) -> AbstractContextManager[Write]:
    """Return a context whose value writes ids and codes; the file appears when the block ends well."""
    return _FORMATS[check_suffix(path)](path, bits // 8)


def check_suffix(path: Path) -> str:
    """Return the kind of file that `path` asks for; InputError where there is no such kind."""
    suffix = path.suffix.lower()
    if suffix not in _FORMATS:
        kinds = ", ".join(_FORMATS)
        raise InputError(f"{path}: codes are written to files ending in {kinds}{suggest(suffix, _FORMATS)}")
    return suffix


def files_of(path: Path) -> tuple[Path, ...]:
    """Return the files that are written; InputError where one would replace what is no list of ids."""
    if check_suffix(path) != ".npy":
        return (path,)
    ids = ids_path(path)
    if os.path.exists(ids) and not _holds_ids(ids):
        raise InputError(
            f"cannot write {path}: its ids go to {ids}, which exists and is no list of ids made by "
            '"snuh encode": choose another name, or move that file'
        )
    return path, ids


def ids_path(path: Path) -> Path:
    """Return where the ids of a .npy file are: codes.npy has codes.ids.json."""
    return path.with_suffix(IDS_SUFFIX)


def _holds_ids(path: Path) -> bool:
    """Tell whether a file is like the lists of `_npy`: one string a line, brackets on lines of their own."""
    try:
        with path.open("rb") as file:
            if file.readline(4) not in (b"[\n", b"[]\n"):
                return False
            return all(line.startswith(b'"') or line == b"]\n" for line in file)
    except OSError:
        return False


@contextmanager
def _jsonl(path: Path, width: int) -> Iterator[Write]:
    """One object a line: {"id": ..., "code": hexadecimal digits}."""
    with atomic_write(path) as beside, beside.open("w", encoding="utf-8", newline="\n") as file:

        def write(ids: Sequence[str], codes: NDArray[np.uint8]) -> None:
            for doc_id, code in zip(ids, codes, strict=True):
                record = {"id": doc_id, "code": code.tobytes().hex()}
                file.write(json.dumps(record, ensure_ascii=False) + "\n")

        yield write
        file.flush()


@contextmanager
def _parquet(path: Path, width: int) -> Iterator[Write]:
    """The columns id (string) and code (binary of fixed size)."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("id", pa.string()), ("code", pa.binary(width))])
    with atomic_write(path) as beside, pq.ParquetWriter(beside, schema) as file:

        def write(ids: Sequence[str], codes: NDArray[np.uint8]) -> None:
            file.write_table(pa.table([pa.array(ids, pa.string()), code_column(codes)], schema=schema))

        yield write


@contextmanager
def _npy(path: Path, width: int) -> Iterator[Write]:
    """A uint8 array (documents, bits / 8), and beside it the ids as a JSON list in the same order."""
    count = 0
    with (
        atomic_write(path) as beside,
        atomic_write(ids_path(path)) as ids_beside,
        beside.open("wb") as file,
        ids_beside.open("w", encoding="utf-8", newline="\n") as ids_file,
    ):
        _write_npy_header(file, 0, width)

        def write(ids: Sequence[str], codes: NDArray[np.uint8]) -> None:
            nonlocal count
            file.write(codes.tobytes())
            for doc_id in ids:
                ids_file.write(("[\n" if count == 0 else ",\n") + json.dumps(doc_id, ensure_ascii=False))
                count += 1

        yield write
        ids_file.write("\n]\n" if count else "[]\n")
        # NumPy leaves room in the header for the number of rows to grow.
        file.seek(0)
        _write_npy_header(file, count, width)


def _write_npy_header(file: IO[bytes], rows: int, width: int) -> None:
    header = {"descr": "|u1", "fortran_order": False, "shape": (rows, width)}
    np.lib.format.write_array_header_1_0(file, header)


_FORMATS: dict[str, Callable[[Path, int], AbstractContextManager[Write]]] = {
    ".parquet": _parquet,
    ".npy": _npy,
    ".jsonl": _jsonl,
}
