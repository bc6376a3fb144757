"""Collections: documents, codes and a model in one place that answers searches."""

from __future__ import annotations

from snuh.collection.backend import check_free, is_collection, short_name
from snuh.collection.collection import Collection
from snuh.collection.query import Rerank
from snuh.collection.results import Added, Fast, Info
from snuh.urls import is_remote, shown

__all__ = [
    "Added",
    "Collection",
    "Fast",
    "Info",
    "Rerank",
    "check_free",
    "is_collection",
    "is_remote",
    "short_name",
    "shown",
]
