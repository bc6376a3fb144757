"""Documents as callers hand them in, checked one by one before anything is stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from snuh.corpus import Document
from snuh.corpus.record import FieldNames, quote, to_document
from snuh.errors import InputError


def checked_documents(
    documents: Iterable[Document | Mapping[str, Any]], max_characters: int
) -> Iterator[Document]:
    """Yield documents; InputError at the first that cannot be stored."""
    for number, given in enumerate(documents, start=1):
        if isinstance(given, Document):
            document = given
        elif isinstance(given, Mapping):
            if given.get("id") is None:
                raise InputError(f'document {number} has no "id": give each one that stays the same')
            document = to_document(dict(given), number, FieldNames())
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
