"""Documents in memory: lists, generators, DataFrames, Arrow tables and datasets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from snuh.corpus.document import (
    SPLITS,
    Document,
    FieldNames,
    FractionCallback,
    RecordError,
    TextSource,
    check_metadata,
    to_document,
)
from snuh.errors import InputError, import_extra
from snuh.text import quote

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROWS_PER_BATCH = 1024
VECTORS_SUFFIX = ".npy"
VECTOR_FIELD = "vector"  # of documents that are added to collections


def is_table(documents: object) -> bool:
    """Tell a table (pandas, polars, pyarrow, DuckDB) from other iterables, such as a column of texts."""
    return hasattr(documents, "__arrow_c_stream__") and hasattr(documents, "columns")


def iterate_rows(documents: Iterable[Any]) -> Iterator[Any]:
    """Yield the rows of a table as mappings, the items of anything else as they are."""
    if is_table(documents):
        yield from _table_rows(documents)
    elif isinstance(documents, str | bytes | Mapping) or not isinstance(documents, Iterable):
        raise InputError(f"expected several documents, got one {type(documents).__name__}: put it in a list")
    else:
        yield from documents


def _table_rows(table: Any) -> Iterator[dict[str, Any]]:  # Any: a table of one of several libraries
    from snuh.corpus.parquet import json_rows

    pa = import_extra("pyarrow")
    try:
        with pa.RecordBatchReader.from_stream(table) as reader:
            for batch in reader:
                for start in range(0, batch.num_rows, ROWS_PER_BATCH):
                    yield from json_rows(batch.slice(start, ROWS_PER_BATCH))
    except (pa.ArrowException, TypeError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"cannot read this {type(table).__name__} as a table ({reason})") from None


def iterate_documents(rows: Iterable[Any], fields: FieldNames | None = None) -> Iterator[Document]:
    """Yield texts, Documents, mappings or the rows of a table as documents; the default id is the number."""
    names = fields or FieldNames()
    for number, row in enumerate(iterate_rows(rows), start=1):
        if isinstance(row, Document):
            yield row
        elif isinstance(row, str):
            yield Document(str(number), row)
        elif isinstance(row, Mapping):
            try:
                yield to_document(dict(row), number, names)
            except RecordError as error:
                raise InputError(f"document {number}: {error}") from None
        else:
            raise InputError(
                f"document {number} must be a string, a Document or a mapping with a text, "
                f"got {type(row).__name__}"
            )


def iterate_texts(rows: Iterable[Any]) -> Iterator[str]:
    """Yield the texts of documents of any kind."""
    return (document.text for document in iterate_documents(rows))


class RowSource(TextSource):
    """Documents in memory as a source; a generator is read into a list, since sources are read repeatedly."""

    name = "texts"

    def __init__(self, rows: Iterable[Any], *, fields: FieldNames | None = None) -> None:
        """Read texts, Documents, mappings, or the rows of a table, with text and id in the named fields."""
        self._rows = list(rows) if isinstance(rows, Iterator) else rows
        self._fields = fields

    def documents(self, progress: FractionCallback | None = None) -> Iterator[Document]:
        """Yield the documents in order, without progress; ids are checked to be unique on the way."""
        seen: dict[str, int] = {}
        for number, document in enumerate(iterate_documents(self._rows, self._fields), start=1):
            if (first := seen.setdefault(document.id, number)) != number:
                raise InputError(
                    f"document {number}: the id {quote(document.id)} is already used by document {first}: "
                    "ids must be unique"
                )
            yield document


# Vectors in an array beside the documents.


def attach_vectors(documents: Iterable[Document], vectors: Iterable[Any], name: str) -> Iterator[Document]:
    """Yield documents with the vectors of the same rows; InputError unless there is one for each."""
    rows, count = iter(vectors), 0
    for count, document in enumerate(documents, start=1):
        vector = next(rows, None)
        if vector is None:
            raise InputError(
                f"{name} has {count - 1:,} rows, there are more documents: expected one for each"
            )
        yield replace(document, vector=vector)
    if next(rows, None) is not None:
        raise InputError(f"{name} has more than {count:,} rows: expected one for each document")


def open_vectors(path: Path) -> NDArray[Any]:
    """Map a .npy file of vectors (documents, dims) into memory; InputError if it is something else."""
    import numpy as np

    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file of vectors") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path.name}: not a NumPy file, or a damaged one ({error})") from None
    if array.ndim != 2 or not array.shape[1] or array.dtype.kind not in "fiu":
        raise InputError(
            f"{path.name}: expected an array of numbers with a row per document, got {array.dtype} of shape "
            f"{array.shape}"
        )
    return array


class VectorSource(TextSource):
    """The documents of a source with the rows of an array as their vectors."""

    def __init__(self, source: TextSource, vectors: Any, *, name: str = "vectors") -> None:
        """Attach `vectors` (documents, dims), an array of any library, which messages call `name`."""
        self.name = source.name
        self._source, self._vectors, self._vectors_name = source, vectors, name
        self._is_counted = False

    def documents(self, progress: FractionCallback | None = None) -> Iterator[Document]:
        """Yield the documents in order; InputError, before the first, unless there is one vector for each."""
        if not self._is_counted:
            documents = sum(1 for _ in self._source.documents())
            if documents != len(self._vectors):
                raise InputError(
                    f"{self._vectors_name} has {len(self._vectors):,} rows, {self.name} has {documents:,} "
                    "documents: expected a row for each document, in the same order"
                )
            self._is_counted = True
        yield from attach_vectors(self._source.documents(progress), self._vectors, self._vectors_name)


# Documents for `Collection.add`, which need an id.


def checked_documents(
    documents: Iterable[Any], max_characters: int, *, vectors: str | None = None
) -> Iterator[Document]:
    """Yield documents, of any kind of rows, with ids; InputError at the first invalid one.

    `vectors` names the key of mappings that may hold a vector; without it, all other keys are metadata.
    """
    names = FieldNames(vectors=vectors, optional_vectors=True)
    for number, item in enumerate(iterate_rows(documents), start=1):
        if isinstance(item, Document):
            document = _check_types(item, number)
        elif isinstance(item, Mapping):
            if item.get("id") is None:
                raise InputError(f'document {number} has no "id": give each document a stable one')
            try:
                document = to_document(dict(item), number, names)
            except RecordError as error:
                raise InputError(f"document {number}: {error}") from error
        else:
            raise InputError(
                f"document {number} must be a Document or a mapping with id and text, "
                f"got {type(item).__name__}"
            )
        if len(document.text) > max_characters:
            raise InputError(
                f"the document {quote(document.id)} has {len(document.text):,} characters, the limit is "
                f"{max_characters:,}: split it, or raise the limit"
            )
        yield document


def _check_types(document: Document, number: int) -> Document:
    """Return the document; InputError if a field has another type than declared."""
    expected = None
    if not isinstance(document.id, str) or not document.id:
        expected = f"an id that is a non-empty string, got {document.id!r}"
    elif not isinstance(document.text, str):
        expected = f"a text that is a string, got {type(document.text).__name__}"
    elif not isinstance(document.labels, tuple | list) or not all(
        isinstance(x, str) for x in document.labels
    ):
        expected = f"labels that are a tuple of strings, got {document.labels!r}"
    elif document.split not in (None, *SPLITS):
        expected = f"a split of {', '.join(SPLITS)} or None, got {document.split!r}"
    elif not isinstance(document.metadata, Mapping):
        expected = f"metadata that is a mapping, got {type(document.metadata).__name__}"
    if expected is not None:
        raise InputError(f"document {number}, {document.id!r}: expected {expected}")
    try:
        metadata = check_metadata(document.metadata, nan=False)
    except RecordError as error:
        raise InputError(f"document {number}, {document.id!r}: {error}") from error
    return document if metadata == document.metadata else replace(document, metadata=metadata)
