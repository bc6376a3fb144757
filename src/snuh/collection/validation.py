"""Documents as callers hand them in, checked one by one before anything is stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from snuh.corpus import Document
from snuh.corpus.document import SPLITS, FieldNames, RecordError, quote, to_document
from snuh.errors import InputError


def checked_documents(
    documents: Iterable[Document | Mapping[str, Any]], max_characters: int
) -> Iterator[Document]:
    """Yield documents; InputError at the first that cannot be stored."""
    for number, given in enumerate(documents, start=1):
        if isinstance(given, Document):
            document = _checked(given, number)
        elif isinstance(given, Mapping):
            if given.get("id") is None:
                raise InputError(f'document {number} has no "id": give each one that stays the same')
            try:
                document = to_document(dict(given), number, FieldNames())
            except RecordError as error:
                raise InputError(f"document {number}: {error}") from error
        else:
            raise InputError(
                f"document {number} must be a Document or a mapping with id and text, "
                f"got {type(given).__name__}"
            )
        if len(document.text) > max_characters:
            raise InputError(
                f"the document {quote(document.id)} has {len(document.text):,} characters, the limit is "
                f"{max_characters:,}: cut it into parts, or raise the limit"
            )
        yield document


def _checked(document: Document, number: int) -> Document:
    """Return a document whose fields are of the types that it promises."""
    wrong = None
    if not isinstance(document.id, str) or not document.id:
        wrong = f"an id that is a string and not empty, got {document.id!r}"
    elif not isinstance(document.text, str):
        wrong = f"a text, got {type(document.text).__name__}"
    elif not isinstance(document.labels, tuple | list) or not all(
        isinstance(x, str) for x in document.labels
    ):
        wrong = f"labels that are a tuple of strings, got {document.labels!r}"
    elif document.split not in (None, *SPLITS):
        wrong = f"a split among {', '.join(SPLITS)}, got {document.split!r}"
    elif not isinstance(document.metadata, Mapping):
        wrong = f"metadata that are a mapping, got {type(document.metadata).__name__}"
    if wrong is not None:
        raise InputError(f"document {number}, {document.id!r}: expected {wrong}")
    return document
