"""Open a source by path, dataset name or "-"."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from snuh.corpus.beir import BeirSource, is_beir_folder
from snuh.corpus.document import FieldNames, TextSource
from snuh.corpus.matrix import MatrixSource, read_matrix
from snuh.corpus.parquet import read_parquet
from snuh.corpus.reader import Format, RecordSource, zip_member
from snuh.corpus.rows import VECTORS_SUFFIX, RowSource, VectorSource, open_vectors
from snuh.corpus.text_files import (
    HEADER_HINT,
    LABEL_SEPARATORS,
    FolderSource,
    StdinSource,
    read_csv,
    read_json,
    read_jsonl,
    read_plain,
    read_tsv,
)
from snuh.errors import InputError, suggest
from snuh.text import quote, shorten

BINARY_HINT = "; binary columns are left out: store text as strings"
TEXT_FORMATS = {
    ".jsonl": Format(read_jsonl),
    ".csv": Format(read_csv, hint=HEADER_HINT, separators=LABEL_SEPARATORS),
    ".tsv": Format(read_tsv, hint=HEADER_HINT, separators=LABEL_SEPARATORS),
    ".txt": Format(read_plain),
    ".json": Format(read_json, unit="record"),
}
COMPRESSIONS = (".gz", ".zst", ".zip")
FORMATS = {
    **{
        suffix + compression: form
        for suffix, form in TEXT_FORMATS.items()
        for compression in ("", *COMPRESSIONS)
    },
    ".parquet": Format(read_parquet, unit="row", hint=BINARY_HINT),
}
ZIP_SUFFIX, MATRIX_SUFFIX = ".zip", ".mat"
SUFFIXES = (*FORMATS, ZIP_SUFFIX, MATRIX_SUFFIX)

VARIABLE = "SNUH_DATA"
BUNDLED = Path(__file__).parent / "data"  # corpora that are part of the package

# Sources of the datasets of the experiments, for the message about a missing one.
ORIGINS = {
    "ng20": "20 Newsgroups, from scikit-learn's fetch_20newsgroups or qwone.com/~jason/20Newsgroups",
    "reuters": "Reuters-21578, from archive.ics.uci.edu/dataset/137",
    "tmc": "the reports of the SIAM 2007 text mining competition, from NASA's DASHlink",
    "tmc500": "500 terms of the SIAM 2007 text mining competition's reports, from NASA's DASHlink",
    "agnews": "AG News, from huggingface.co/datasets/fancyzhx/ag_news",
    "arxiv100k": "titles and abstracts of arXiv, from kaggle.com/datasets/Cornell-University/arxiv",
}
MATRIX_ORIGIN = "rows as in the paper's files, from github.com/unsuthee/VariationalDeepSemanticHashing"


def open_source(
    spec: str | Path | Iterable[Any],
    *,
    text_field: str = "text",
    id_field: str = "id",
    labels_field: str = "labels",
    split_field: str = "split",
    vectors: str | None = None,
) -> TextSource | MatrixSource:
    """Open a file, a folder of text files, "-" for standard input, or a dataset by its name in SNUH_DATA.

    "sqlite-docs" is part of the package: 407 sections of the documentation of SQLite.

    A folder with corpus.jsonl and queries.jsonl is read as one of the BEIR benchmark.

    Documents in memory are a source as well: a list of texts or of dicts, a DataFrame of pandas or polars, an
    Arrow table, a dataset of Hugging Face. Field names apply to sources with named fields only. Invalid
    content raises InputError during iteration.

    `vectors` names the field that holds each document's vector, or a .npy file with a row per document.
    """
    if vectors is not None and vectors.endswith(VECTORS_SUFFIX):
        array = open_vectors(Path(vectors))
        source = open_source(
            spec, text_field=text_field, id_field=id_field, labels_field=labels_field, split_field=split_field
        )
        if isinstance(source, MatrixSource):
            raise InputError(f"{source.name} contains feature rows: vectors are for sources of texts")
        return VectorSource(source, array, name=Path(vectors).name)
    fields = FieldNames(text_field, id_field, labels_field, split_field, vectors)
    if not isinstance(spec, str | Path):
        return RowSource(spec, fields=fields)
    if str(spec) == "-":
        return StdinSource(fields=fields)
    path = _locate(str(spec))
    name = path.name if os.path.exists(spec) else str(spec)
    if path.is_dir():
        fields.check_unused(name)
        return BeirSource(path) if is_beir_folder(path) else FolderSource(path)
    suffix = next((suffix for suffix in SUFFIXES if path.name.lower().endswith(suffix)), None)
    if suffix is None:
        ending = "".join(path.suffixes[-1:])
        raise InputError(
            f"{path}: unknown kind of file{suggest(ending, SUFFIXES)}; "
            f"a source is a folder, or a file ending in {', '.join(TEXT_FORMATS)} (each also compressed: "
            f"{', '.join(COMPRESSIONS)}), .parquet or {MATRIX_SUFFIX}"
        )
    if not path.is_file():
        raise InputError(f'{path} is not a regular file: pipe it in and give "-" as the source')
    if suffix == MATRIX_SUFFIX:
        fields.check_unused(name)
        return read_matrix(path, name=name)
    form = _zipped_format(path) if suffix == ZIP_SUFFIX else FORMATS[suffix]
    if form.read is read_plain:
        fields.check_unused(name)
    return RecordSource(path, form, name=name, fields=fields)


def _zipped_format(path: Path) -> Format:
    """Return the format of the file in a zip archive, by its name."""
    member = zip_member(path)
    form = next((form for suffix, form in TEXT_FORMATS.items() if member.lower().endswith(suffix)), None)
    if form is None:
        raise InputError(
            f"{path.name} holds {quote(member)}: expected a file ending in {', '.join(TEXT_FORMATS)}"
        )
    return form


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
    bundled = BUNDLED / f"{spec}.jsonl.gz"
    return bundled if os.path.isfile(bundled) else find_corpus(spec, SUFFIXES)


# Datasets by name: files in the folder that the environment variable SNUH_DATA points to.


def find_corpus(name: str, suffixes: tuple[str, ...]) -> Path:
    """Return the file of the dataset `name`, such as ng20 or ng20.tfidf, with or without its suffix.

    If several files match, the first of the suffixes wins.
    """
    value = os.environ.get(VARIABLE)
    if not value:
        raise InputError(
            f'there is no file or folder "{shorten(name)}"; to use a corpus by its name, set {VARIABLE} '
            f"to the folder that holds it{_origin(name)}"
        )
    folder = Path(value)
    if not folder.is_dir():
        raise InputError(f"{VARIABLE} must be an existing folder, got {folder}")
    candidates = [name] if name.endswith(suffixes) else []
    candidates += [name + suffix for suffix in suffixes]
    for candidate in candidates:
        if os.path.isfile(folder / candidate):
            return folder / candidate
    known = _corpora(folder, suffixes)
    listed = ", ".join(known) or "no readable files"
    raise InputError(
        f'there is no file, folder or corpus "{shorten(name)}"{suggest(name, known)}; {VARIABLE} holds: '
        f"{listed}{_origin(name)}"
    )


def _origin(name: str) -> str:
    """Return a hint on how to get a known dataset."""
    corpus = name.removesuffix(".tfidf")
    if corpus not in ORIGINS:
        return ""
    if corpus != name:
        return f"; {name}.mat has {MATRIX_ORIGIN}"
    return (
        f"; {name} is {ORIGINS[name]}, saved as {name}.jsonl.gz with id, text, labels and split on each line"
    )


def _corpora(folder: Path, suffixes: tuple[str, ...]) -> list[str]:
    files = [path.name for path in folder.iterdir() if path.is_file()]
    return sorted(
        {file.removesuffix(suffix) for file in files for suffix in suffixes if file.endswith(suffix)}
    )
