"""The neighbour graph: the k documents most similar to each, found exactly or nearly so."""

from snuh.graph.finding import Search, nearest_neighbors
from snuh.graph.kinds import Kinds, group_equal_rows
from snuh.graph.neighbors import DensePart, Neighbors, gaussian_affinity

__all__ = [
    "DensePart",
    "Kinds",
    "Neighbors",
    "Search",
    "gaussian_affinity",
    "group_equal_rows",
    "nearest_neighbors",
]
