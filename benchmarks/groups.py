"""The fraction of exact neighbours in a common group, an upper bound on the recall with Spark, and its cost.

SNUH_DATA=... python -m benchmarks.groups [--corpus arxiv100k] [--sizes 25000,50000] > results/groups.json
"""

from __future__ import annotations

import argparse
import json
import math
import sys

import numpy as np
from scipy import sparse

import snuh
from benchmarks.machine import facts
from snuh.features import TfidfFeatures
from snuh.spark.neighbors import GROUP_SIZE, Similarity, find_centers
from snuh.training.spectral import fit_lsa

SAMPLE, NEIGHBORS = 300, 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", default="arxiv100k")
    parser.add_argument("--sizes", default="25000,50000,100000")
    options = parser.parse_args()
    texts = [document.text for document in snuh.open_source(options.corpus)]
    every = TfidfFeatures().fit(texts).transform(texts)
    order = np.random.default_rng(0).permutation(len(texts))
    runs = []
    for docs in map(int, options.sizes.split(",")):
        X = every[order[:docs]]
        directions = fit_lsa(X, dims=128, seed=0).directions
        for weight in (0.5, 0.0):
            runs.append(measure(X, Similarity(directions, weight)))
            print(runs[-1], file=sys.stderr, flush=True)
    print(json.dumps({"corpus": options.corpus, "runs": runs, "machine": facts()}, indent=2))


def measure(X: sparse.csr_matrix, similarity: Similarity) -> dict[str, object]:
    docs = X.shape[0]
    values = similarity.values(X)
    centers = find_centers(X, similarity, groups=math.ceil(docs * similarity.groups / GROUP_SIZE), seed=0)
    distances = (centers**2).sum(axis=1) - 2.0 * values @ centers.T
    joined = np.argpartition(distances, similarity.groups - 1, axis=1)[:, : similarity.groups]
    sample = np.random.default_rng(1).choice(np.flatnonzero(np.diff(X.indptr)), size=SAMPLE, replace=False)
    cosines = (1 - similarity.weight) * (X[sample] @ X.T).toarray()
    if similarity.weight:
        cosines += similarity.weight * (values[sample] @ values.T)
    cosines[np.arange(SAMPLE), sample] = 0.0
    nearest = np.argsort(-cosines, axis=1, kind="stable")[:, :NEIGHBORS]
    wanted = np.take_along_axis(cosines, nearest, axis=1) > 0
    shared = (joined[sample][:, None, :, None] == joined[nearest][:, :, None, :]).any(axis=(2, 3))
    sizes = np.bincount(joined.ravel(), minlength=len(centers)).astype(float)
    return {
        "documents": docs,
        "lsa": similarity.weight > 0,
        "groups": len(centers),
        "largest": int(sizes.max()),
        "recall": round(float(shared[wanted].mean()), 4),
        "comparisons_per_document": round(float((sizes**2).sum() / docs)),
    }


if __name__ == "__main__":
    main()
