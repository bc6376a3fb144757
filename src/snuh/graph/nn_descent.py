"""NN-descent: improve neighbour lists by comparing documents with the neighbours of their neighbours.

Dong, Charikar, Li: Efficient K-Nearest Neighbor Graph Construction for Generic Similarity Measures. WWW 2011.

Here a round reads the lists of the previous round and writes new ones, row by row, so the result depends on
neither threads nor order. Each document looks at its best neighbours and at the best of those that list it.
Pairs that were compared by the initialisation, or reachable in an earlier round, are not compared again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import prange

from snuh._numba import njit, usable_processors
from snuh.graph.neighbors import Floats, HybridRows, Indices, Integers, insert, row_ranges, similarity_to

MAX_LINKS = 20  # best neighbours of a document to follow, and as many of those that list it


@dataclass(frozen=True)
class TopK:
    """The best neighbours of each document so far, best first, and which of them the last round added."""

    rows: Integers  # (docs, width), -1 as padding
    similarity: Floats  # (docs, width)
    is_new: npt.NDArray[np.bool_]  # (docs, width)


@dataclass(frozen=True)
class ComparedGroups:
    """Pairs that the initialisation has compared: those of a document's group with the groups it has met."""

    group: Integers  # (docs,), ascending
    offsets: Indices  # (groups + 1,)
    met: Indices  # the groups that group g has met are met[offsets[g] : offsets[g + 1]]


def refine(rows: HybridRows, topk: TopK, compared: ComparedGroups) -> TopK:
    """Return the lists after one round."""
    links, is_new_link = _links(topk.rows, topk.similarity, topk.is_new, MAX_LINKS)
    # Most pairs are skipped because of their groups: gathered here, the groups are read sequentially later.
    # Where there is no link (-1) the value is not used.
    link_groups = compared.group[links]
    better = TopK(topk.rows.copy(), topk.similarity.copy(), np.zeros_like(topk.is_new))
    for first, last in row_ranges(len(rows)):
        _refine(
            *(rows.X.indptr, rows.X.indices, rows.X.data, rows.X.shape[1], rows.dense, rows.sparse_weight),
            *(links, is_new_link, compared.group, link_groups, compared.offsets, compared.met),
            *(better.rows, better.similarity, better.is_new, first, last, usable_processors()),
        )
    return better


@njit()
def _links(rows, similarity, is_new, max_links):  # type: ignore[no-untyped-def]
    """Return the documents that each one looks at (docs, 2 * max_links), -1 as padding, and which are new."""
    docs = len(rows)
    back = np.full((docs, max_links), -1, dtype=np.int32)
    back_similarity = np.zeros((docs, max_links), dtype=np.float32)
    for row in range(docs):
        for x in range(max_links):
            other = rows[row, x]
            if other < 0:
                break
            insert(back[other], back_similarity[other], row, similarity[row, x])
    links = np.full((docs, 2 * max_links), -1, dtype=np.int32)
    is_new_link = np.zeros((docs, 2 * max_links), dtype=np.bool_)
    for row in range(docs):
        count = 0
        for x in range(max_links):
            if rows[row, x] >= 0:
                links[row, count] = rows[row, x]
                is_new_link[row, count] = is_new[row, x]
                count += 1
        for other in back[row]:
            if other < 0:
                break
            links[row, count] = other
            for x in range(max_links):
                if rows[other, x] == row:
                    is_new_link[row, count] = is_new[other, x]
            count += 1
    return links, is_new_link


@njit(parallel=True)
def _refine(  # type: ignore[no-untyped-def]
    indptr,
    indices,
    data,
    terms,
    dense,
    sparse_weight,
    links,
    is_new_link,
    group,
    link_groups,
    offsets,
    met,
    rows,
    similarity,
    is_new,
    first,
    last,
    parts,
):
    (docs, width), size = rows.shape, last - first
    for part in prange(parts):
        seen = np.full(docs, -1, dtype=np.int32)  # 2 * row: known before, 2 * row + 1: compared now
        met_by = np.full(len(offsets) - 1, -1, dtype=np.int32)  # the last group that has met this one
        weights = np.zeros(terms, dtype=np.float32)
        for row in range(first + part * size // parts, first + (part + 1) * size // parts):
            own = group[row]
            for g in range(offsets[own], offsets[own + 1]):
                met_by[met[g]] = own
            seen[row] = 2 * row
            for other in rows[row]:
                if other >= 0:
                    seen[other] = 2 * row
            for p in range(indptr[row], indptr[row + 1]):
                weights[indices[p]] = data[p]
            for x in range(links.shape[1]):
                neighbor = links[row, x]
                if neighbor < 0:
                    break
                for y in range(-1, links.shape[1]):  # -1: the linked document itself may not be in the list
                    other = neighbor if y < 0 else links[neighbor, y]
                    if other < 0:
                        break
                    if met_by[group[other] if y < 0 else link_groups[neighbor, y]] == own:
                        continue
                    if y >= 0 and not (is_new_link[row, x] or is_new_link[neighbor, y]):
                        continue
                    if seen[other] >= 2 * row:
                        continue
                    seen[other] = 2 * row + 1
                    value = similarity_to(
                        weights, dense[row], other, indptr, indices, data, dense, sparse_weight
                    )
                    insert(rows[row], similarity[row], other, value)
            for x in range(width):
                is_new[row, x] = rows[row, x] >= 0 and seen[rows[row, x]] == 2 * row + 1
            for p in range(indptr[row], indptr[row + 1]):
                weights[indices[p]] = 0
