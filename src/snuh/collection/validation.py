"""Validation of documents passed to `Collection.add`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from snuh.corpus import Document
from snuh.corpus.document import SPLITS, FieldNames, RecordError, check_metadata, to_document
from snuh.errors import InputError
from snuh.text import quote


def checked_documents(
    documents: Iterable[Document | Mapping[str, Any]], max_characters: int
) -> Iterator[Document]:
    """Yield documents; InputError at the first invalid one."""
    for number, item in enumerate(documents, start=1):
        if isinstance(item, Document):
            document = _check_types(item, number)
        elif isinstance(item, Mapping):
            if item.get("id") is None:
                raise InputError(f'document {number} has no "id": give each document a stable one')
            try:
                document = to_document(dict(item), number, FieldNames())
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
