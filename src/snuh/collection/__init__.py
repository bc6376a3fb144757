"""Collections: documents, codes and a model in one folder that answers searches."""

from __future__ import annotations

from snuh.collection.collection import Collection
from snuh.collection.folder import check_free, is_collection
from snuh.collection.rerank import Rerank
from snuh.collection.results import Added, Info

__all__ = ["Added", "Collection", "Info", "Rerank", "check_free", "is_collection"]
