"""The k-nearest-neighbour graph of the documents, by exact or approximate search."""

from __future__ import annotations

from snuh.graph.neighbors import (
    DensePart,
    Neighbors,
    Search,
    UniqueRows,
    find_unique_rows,
    gaussian_affinity,
    nearest_neighbors,
)

__all__ = [
    "DensePart",
    "Neighbors",
    "Search",
    "UniqueRows",
    "find_unique_rows",
    "gaussian_affinity",
    "nearest_neighbors",
]
