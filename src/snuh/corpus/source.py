"""Open a source by path, dataset name or "-"."""

from __future__ import annotations

import os
from pathlib import Path

from snuh.corpus.datasets import VARIABLE, find_corpus
from snuh.corpus.document import FieldNames, TextSource
from snuh.corpus.matrix import MatrixSource, read_matrix
from snuh.corpus.parquet import read_parquet
from snuh.corpus.reader import Format, RecordSource
from snuh.corpus.text_files import (
    HEADER_HINT,
    FolderSource,
    StdinSource,
    read_csv,
    read_jsonl,
    read_plain,
    read_tsv,
)
from snuh.errors import InputError, suggest

FORMATS = {
    ".jsonl": Format(read_jsonl),
    ".jsonl.gz": Format(read_jsonl),
    ".csv": Format(read_csv, hint=HEADER_HINT),
    ".csv.gz": Format(read_csv, hint=HEADER_HINT),
    ".tsv": Format(read_tsv, hint=HEADER_HINT),
    ".tsv.gz": Format(read_tsv, hint=HEADER_HINT),
    ".txt": Format(read_plain),
    ".txt.gz": Format(read_plain),
    ".parquet": Format(read_parquet, unit="row", hint="; binary columns are left out: store text as strings"),
}
MATRIX_SUFFIX = ".mat"
SUFFIXES = (*FORMATS, MATRIX_SUFFIX)


def open_source(
    spec: str | Path, *, text_field: str = "text", id_field: str = "id"
) -> TextSource | MatrixSource:
    """Open a file, a folder of text files, "-" for standard input, or a dataset by its name in SNUH_DATA.

    Field names apply to formats with named fields only. Invalid content raises InputError during iteration.
    """
    fields = FieldNames(text_field, id_field)
    if str(spec) == "-":
        return StdinSource(fields=fields)
    path = _locate(str(spec))
    name = path.name if os.path.exists(spec) else str(spec)
    if path.is_dir():
        fields.check_unused(name)
        return FolderSource(path)
    suffix = next((suffix for suffix in SUFFIXES if path.name.lower().endswith(suffix)), None)
    if suffix is None:
        ending = "".join(path.suffixes[-1:])
        raise InputError(
            f"{path}: unknown kind of file{suggest(ending, SUFFIXES)}; "
            f"a source is a folder, or a file ending in {', '.join(SUFFIXES)}"
        )
    if not path.is_file():
        raise InputError(f'{path} is not a regular file: pipe it in and give "-" as the source')
    if suffix == MATRIX_SUFFIX:
        fields.check_unused(name)
        return read_matrix(path, name=name)
    form = FORMATS[suffix]
    if form.read is read_plain:
        fields.check_unused(name)
    return RecordSource(path, form, name=name, fields=fields)


def source_path(spec: str) -> Path | None:
    """Return the path of a source; None if there is none, or for the URL of a database."""
    if spec == "-":
        return Path("/dev/stdin")  # it may be a file redirected by the shell
    try:
        return _locate(spec)
    except InputError:
        return None


def _locate(spec: str) -> Path:
    if not spec.strip():
        raise InputError("the source is empty: give a file, a folder, a corpus name, or - for standard input")
    path = Path(spec)
    if os.path.exists(spec):  # unlike Path.exists, False for a name that is too long
        return path
    is_path = path.name != spec or (spec.endswith(SUFFIXES) and not os.environ.get(VARIABLE))
    if is_path:
        near = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
        raise InputError(f"{spec}: no such file or folder{suggest(path.name, near)}")
    return find_corpus(spec, SUFFIXES)
