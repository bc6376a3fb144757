"""What to call a document in one line."""

from __future__ import annotations

from snuh.corpus import Document

LONGEST = 100


def title_of(document: Document) -> str:
    """Return the field "title", or the first line with something on it, cut where it is long."""
    named = document.metadata.get("title")
    lines = (named if isinstance(named, str) and named.strip() else document.text).splitlines()
    return next((" ".join(line.split()) for line in lines if line.strip()), "")[:LONGEST]
