"""The parts of a document as texts that a database can keep, and back."""

from __future__ import annotations

import json
from typing import NamedTuple

from snuh.corpus import Document
from snuh.errors import InputError

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
_decode = json.JSONDecoder().raw_decode  # what was written here has nothing around it to look at


class Columns(NamedTuple):
    """A document; `labels` is a JSON list and `metadata` a JSON object."""

    id: str
    split: str | None
    labels: str
    metadata: str
    text: str


def to_columns(document: Document) -> Columns:
    """Return the columns; InputError for what is no JSON, or half a surrogate pair, which has no bytes."""
    try:
        labels, metadata = _encode(document.labels), _encode(document.metadata)
        for text in (document.id, document.text, document.split or "", labels, metadata):
            text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"the document {document.id!r} cannot be stored: {error}") from error
    return Columns(document.id, document.split, labels, metadata, document.text)


def to_document(identity: str, split: str | None, labels: str, metadata: str, text: str) -> Document:
    """Return the document that columns were made of."""
    # Most documents of many collections have neither, and reading JSON takes longer than all the rest.
    named = tuple(_decode(labels)[0]) if labels != "[]" else ()
    return Document(identity, text, named, split, _decode(metadata)[0] if metadata != "{}" else {})


def is_storable(text: str) -> bool:
    """Tell whether a text has no half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
