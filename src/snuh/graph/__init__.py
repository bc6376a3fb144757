"""The neighbour graph: the k documents most similar to each, found exactly or nearly so."""

from snuh.graph.knn import Search, nearest_neighbors
from snuh.graph.neighbors import DensePart, Kinds, Neighbors, gaussian_affinity, group_equal_rows

__all__ = [
    "DensePart",
    "Kinds",
    "Neighbors",
    "Search",
    "gaussian_affinity",
    "group_equal_rows",
    "nearest_neighbors",
]
