"""Collections: searchable documents with their codes and model, in a folder or a database."""

from __future__ import annotations

from snuh.collection.backend import ensure_absent, is_collection, short_name
from snuh.collection.collection import Collection
from snuh.collection.query import Rerank
from snuh.collection.results import Added, IndexInfo, Info
from snuh.io import is_remote, redact

__all__ = [
    "Added",
    "Collection",
    "IndexInfo",
    "Info",
    "Rerank",
    "ensure_absent",
    "is_collection",
    "is_remote",
    "redact",
    "short_name",
]
