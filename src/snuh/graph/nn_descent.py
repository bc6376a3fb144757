"""Better neighbours by asking the neighbours: a neighbour of a neighbour is likely to be one.

Dong, Charikar, Li: Efficient K-Nearest Neighbor Graph Construction for Generic Similarity Measures. WWW 2011.

Here a round reads the lists of the last one and writes new ones, row by row, so that the result depends on
neither threads nor order. Each document asks its best neighbours and the best of those that list it. What was
compared in the start or came by ways known in an earlier round is not compared again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import prange

from snuh._numba import njit, usable_processors
from snuh.graph.neighbors import Floats, Integers, JoinedRows, insert, similarity_to, spans

REACH = 20  # best neighbours that are asked, and as many of those that list a document

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Lists:
    """The best found so far for each document, best first, and which of them the last round has found."""

    rows: Integers  # (docs, width), -1 where there are no more
    similarity: Floats  # (docs, width)
    is_new: Flags  # (docs, width)


@dataclass(frozen=True)
class Compared:
    """What need not be compared: each document belongs to a group, and each group has met some groups."""

    group: npt.NDArray[np.int32]  # (docs,), ascending
    starts: npt.NDArray[np.int64]  # (groups + 1,)
    met: npt.NDArray[np.int64]  # groups, from start to start


def refine(rows: JoinedRows, lists: Lists, compared: Compared) -> Lists:
    """Return the lists after one round."""
    asked, is_new_way = _asked(lists.rows, lists.similarity, lists.is_new, REACH)
    # Most are left out by their group: read in a row here, not one by one from all over `group`. Where nobody
    # is asked (-1) it means nothing.
    group_asked = compared.group[asked]
    better = Lists(lists.rows.copy(), lists.similarity.copy(), np.zeros_like(lists.is_new))
    for first, last in spans(len(rows)):
        _ask(
            *(rows.X.indptr, rows.X.indices, rows.X.data, rows.X.shape[1], rows.dense, rows.share),
            *(asked, is_new_way, compared.group, group_asked, compared.starts, compared.met),
            *(better.rows, better.similarity, better.is_new, first, last, usable_processors()),
        )
    return better


@njit()
def _asked(rows, similarity, is_new, reach):  # type: ignore[no-untyped-def]
    """Return whom each document asks (docs, 2 * reach), -1 after the last, and which of them are new."""
    docs = len(rows)
    back = np.full((docs, reach), -1, dtype=np.int32)
    back_similarity = np.zeros((docs, reach), dtype=np.float32)
    for row in range(docs):
        for x in range(reach):
            other = rows[row, x]
            if other < 0:
                break
            insert(back[other], back_similarity[other], row, similarity[row, x])
    asked = np.full((docs, 2 * reach), -1, dtype=np.int32)
    is_new_way = np.zeros((docs, 2 * reach), dtype=np.bool_)
    for row in range(docs):
        count = 0
        for x in range(reach):
            if rows[row, x] >= 0:
                asked[row, count] = rows[row, x]
                is_new_way[row, count] = is_new[row, x]
                count += 1
        for other in back[row]:
            if other < 0:
                break
            asked[row, count] = other
            for x in range(reach):
                if rows[other, x] == row:
                    is_new_way[row, count] = is_new[other, x]
            count += 1
    return asked, is_new_way


@njit(parallel=True)
def _ask(  # type: ignore[no-untyped-def]
    indptr,
    indices,
    data,
    terms,
    dense,
    share,
    asked,
    is_new_way,
    group,
    group_asked,
    starts,
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
        met_by = np.full(len(starts) - 1, -1, dtype=np.int32)  # the last group that met this one
        line = np.zeros(terms, dtype=np.float32)
        for row in range(first + part * size // parts, first + (part + 1) * size // parts):
            own = group[row]
            for g in range(starts[own], starts[own + 1]):
                met_by[met[g]] = own
            seen[row] = 2 * row
            for other in rows[row]:
                if other >= 0:
                    seen[other] = 2 * row
            for p in range(indptr[row], indptr[row + 1]):
                line[indices[p]] = data[p]
            for x in range(asked.shape[1]):
                friend = asked[row, x]
                if friend < 0:
                    break
                for y in range(-1, asked.shape[1]):  # first the one asked, who may not be in the list
                    other = friend if y < 0 else asked[friend, y]
                    if other < 0:
                        break
                    if met_by[group[other] if y < 0 else group_asked[friend, y]] == own:
                        continue
                    if y >= 0 and not (is_new_way[row, x] or is_new_way[friend, y]):
                        continue
                    if seen[other] >= 2 * row:
                        continue
                    seen[other] = 2 * row + 1
                    value = similarity_to(line, dense[row], other, indptr, indices, data, dense, share)
                    insert(rows[row], similarity[row], other, value)
            for x in range(width):
                is_new[row, x] = rows[row, x] >= 0 and seen[rows[row, x]] == 2 * row + 1
            for p in range(indptr[row], indptr[row + 1]):
                line[indices[p]] = 0
