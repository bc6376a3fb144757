"""Duplicates and near-duplicates: of documents, and of feature rows."""

from __future__ import annotations

from snuh.dedup.documents import Duplicate, DuplicateReport, Keep, deduplicate
from snuh.dedup.near_duplicates import (
    DEFAULT_THRESHOLD,
    Duplicates,
    Measure,
    check_numbers,
    default_radius,
    find_duplicates,
)

__all__ = [
    "DEFAULT_THRESHOLD",
    "Duplicate",
    "DuplicateReport",
    "Duplicates",
    "Keep",
    "Measure",
    "check_numbers",
    "deduplicate",
    "default_radius",
    "find_duplicates",
]
