"""The neighbour graph: our kernel against sparse_dot_topn on the same rows, and the cost of adding LSA.

    SNUH_DATA=... python -m benchmarks.graph [--corpus ng20] [--rounds 3]

Contenders alternate in one process. Prints JSON: seconds, ratios, and the fraction of neighbours that agree.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sparse_dot_topn import sp_matmul_topn

from benchmarks.alternating import median_seconds
from benchmarks.machine import facts
from snuh.corpus import MatrixSource, open_source
from snuh.features import TfidfFeatures
from snuh.graph import DensePart, nearest_neighbors
from snuh.training.spectral import fit_lsa

K, THREADS, BLOCK = 15, 2, 4096


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", default="ng20")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    X = training_rows(options.corpus)
    lsa = [DensePart(fit_lsa(X, dims=128, seed=0).unit_values(X), 0.5)]
    contenders: dict[str, Callable[[], Any]] = {
        "snuh": lambda: nearest_neighbors(X, k=K),
        "sparse_dot_topn": lambda: with_sparse_dot_topn(X),
        "snuh with LSA": lambda: nearest_neighbors(X, k=K, dense_parts=lsa),
    }
    medians = median_seconds(contenders, rounds=options.rounds)
    result = {
        "corpus": options.corpus,
        "documents": X.shape[0],
        "seconds": medians,
        "sparse_dot_topn_over_snuh": medians["sparse_dot_topn"] / medians["snuh"],
        "similarities_agree": agreement(nearest_neighbors(X, k=K), with_sparse_dot_topn(X)),
        "machine": facts(),
    }
    print(json.dumps(result, indent=2))


def training_rows(corpus: str) -> sparse.csr_matrix:
    source = open_source(corpus)
    if isinstance(source, MatrixSource):
        return source.splits["train"].X
    texts = [doc.text for doc in source if doc.split in (None, "train")]
    return TfidfFeatures().fit(texts).transform(texts)


def with_sparse_dot_topn(X: sparse.csr_matrix) -> sparse.csr_matrix:
    """Find one more neighbour than k, because a document finds itself."""
    columns = X.T.tocsr()
    blocks = [
        sp_matmul_topn(X[start : start + BLOCK], columns, top_n=K + 1, sort=True, n_threads=THREADS)
        for start in range(0, X.shape[0], BLOCK)
    ]
    return sparse.vstack(blocks, format="csr")


def agreement(ours: Any, theirs: sparse.csr_matrix) -> float:
    """Return the fraction of documents whose k-th similarity is the same, ignoring exact duplicates."""
    same = []
    for row in range(len(ours.rows)):
        values = np.sort(theirs.data[theirs.indptr[row] : theirs.indptr[row + 1]])[::-1]
        if len(values) > K and (values[1] < 0.9999):
            same.append(abs(values[K] - ours.similarity[row, K - 1]) < 1e-4)
    return float(np.mean(same))


if __name__ == "__main__":
    main()
