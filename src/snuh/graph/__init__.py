"""The k-nearest-neighbour graph of the documents, by exact or approximate search."""

from snuh.graph.knn import Search, nearest_neighbors
from snuh.graph.neighbors import DensePart, Neighbors, UniqueRows, find_unique_rows, gaussian_affinity

__all__ = [
    "DensePart",
    "Neighbors",
    "Search",
    "UniqueRows",
    "find_unique_rows",
    "gaussian_affinity",
    "nearest_neighbors",
]
