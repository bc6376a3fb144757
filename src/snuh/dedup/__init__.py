"""Find duplicates and near-duplicates among documents or feature rows."""

from __future__ import annotations

from snuh.dedup.documents import Duplicate, DuplicateReport, Keep, WordRows, deduplicate
from snuh.dedup.near_duplicates import (
    DEFAULT_THRESHOLD,
    Duplicates,
    Measure,
    check_parameters,
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
    "WordRows",
    "check_parameters",
    "deduplicate",
    "default_radius",
    "find_duplicates",
]
