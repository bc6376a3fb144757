"""The neighbour graph by Spark holds nearly all exact neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np

from snuh.features import TfidfFeatures
from snuh.graph import nearest_neighbors
from snuh.spark.neighbors import Similarity, group_neighbors
from snuh.training.spectral import fit_lsa


def test_groups_find_the_exact_neighbors(spark: Any, records: list[dict[str, Any]]) -> None:
    texts = [record["text"] for record in records]
    X = TfidfFeatures().fit(texts).transform([*texts, texts[0], ""])  # a duplicate, and an empty document
    lsa = fit_lsa(X, dims=16, seed=0)
    similarity = Similarity(lsa.directions, 0.5)
    graph = group_neighbors(spark, X, similarity, k=10, seed=0, group_size=600)
    exact = nearest_neighbors(X, k=10, dense_parts=similarity.dense_parts(X), search="exact")
    pairs, exact_pairs = (set(zip(*np.nonzero(g.adjacency()), strict=True)) for g in (graph, exact))
    assert len(pairs & exact_pairs) >= 0.95 * len(exact_pairs)
    assert (np.diff(graph.similarity, axis=1) <= 0).all()
    assert list(graph.rows[1200]) == list(exact.rows[1200]) == [0] + [-1] * 9
    assert (graph.rows[1201] == -1).all()
