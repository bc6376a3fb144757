"""A start for the approximate search of sparse rows: documents that a term is important to are compared.

A term's postings are cut to the documents in which it weighs most. How many that are does not grow with the
documents, so neither does the work for one of them. What the cut postings say is most similar is compared by
the whole similarity.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from numba import prange
from scipy import sparse

from snuh.compiling import compiled
from snuh.graph.joined import JoinedRows
from snuh.graph.lists import insert, similarity_to, spans
from snuh.graph.neighbors import Neighbors
from snuh.threads import usable_processors

LONGEST = 300  # documents of a term
CANDIDATES = 60  # documents that are compared with each


def compare_postings(rows: JoinedRows, *, k: int, on_progress: Callable[[float], None] | None) -> Neighbors:
    """Find k documents for each row among those that share important terms with it, nearest first."""
    found = np.full((len(rows), k), -1, dtype=np.int32)
    similarity = np.zeros((len(rows), k), dtype=np.float32)
    postings = cut_postings(rows.X)
    for first, last in spans(len(rows)):
        _compare(
            *(rows.X.indptr, rows.X.indices, rows.X.data),
            *(postings.indptr, postings.indices, postings.data),
            *(rows.share, rows.dense, max(CANDIDATES, k)),
            *(found, similarity, first, last, usable_processors()),
        )
        if on_progress is not None:
            on_progress(last / len(rows))
    return Neighbors(found, similarity)


def cut_postings(X: sparse.csr_matrix) -> sparse.csc_matrix:
    """Return the columns with only their heaviest rows; of equal weights the lower rows stay."""
    columns = X.tocsc()
    terms = np.repeat(np.arange(X.shape[1]), np.diff(columns.indptr))
    ranked = np.lexsort((columns.indices, -columns.data, terms))
    rank: npt.NDArray[np.int64] = np.empty(len(ranked), dtype=np.int64)
    rank[ranked] = np.arange(len(ranked)) - columns.indptr[terms[ranked]]
    kept = rank < LONGEST
    starts = np.append(0, np.cumsum(np.bincount(terms[kept], minlength=X.shape[1])))
    return sparse.csc_matrix((columns.data[kept], columns.indices[kept], starts), shape=X.shape)


@compiled(parallel=True)
def _compare(  # type: ignore[no-untyped-def]
    indptr,
    indices,
    data,
    post_indptr,
    post_rows,
    post_data,
    share,
    dense,
    most,
    rows,
    similarity,
    first,
    last,
    parts,
):
    docs, size = len(rows), last - first
    for part in prange(parts):
        scores = np.zeros(docs, dtype=np.float32)
        touched = np.empty(docs, dtype=np.int32)
        line = np.zeros(len(post_indptr) - 1, dtype=np.float32)
        for row in range(first + part * size // parts, first + (part + 1) * size // parts):
            count = 0
            for p in range(indptr[row], indptr[row + 1]):
                line[indices[p]] = data[p]
                for q in range(post_indptr[indices[p]], post_indptr[indices[p] + 1]):
                    other = post_rows[q]
                    if scores[other] == 0:
                        touched[count] = other
                        count += 1
                    scores[other] += data[p] * post_data[q]
            likely = np.full(most, -1, dtype=np.int32)
            likely_scores = np.zeros(most, dtype=np.float32)
            for t in range(count):
                other = touched[t]
                if other != row:
                    insert(likely, likely_scores, other, scores[other])
                scores[other] = 0
            for other in likely:
                if other >= 0:
                    value = similarity_to(line, dense[row], other, indptr, indices, data, dense, share)
                    insert(rows[row], similarity[row], other, value)
            for p in range(indptr[row], indptr[row + 1]):
                line[indices[p]] = 0
