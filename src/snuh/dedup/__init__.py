"""Duplicates and near-duplicates: of documents, and of feature rows."""

from __future__ import annotations

from snuh.dedup.documents import Duplicate, DuplicateReport, Keep, deduplicate
from snuh.dedup.near_duplicates import (
    USUAL_THRESHOLD,
    Duplicates,
    Measure,
    check_numbers,
    find_duplicates,
    usual_radius,
)

__all__ = [
    "USUAL_THRESHOLD",
    "Duplicate",
    "DuplicateReport",
    "Duplicates",
    "Keep",
    "Measure",
    "check_numbers",
    "deduplicate",
    "find_duplicates",
    "usual_radius",
]
