"""The paper's visualization of codes: a two-dimensional map of test documents, for SNUH and AMMI."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from snuh.encoder import Encoder
from snuh.experiments.corpora import Corpus
from snuh.experiments.run import Row, Run
from snuh.experiments.target import (
    Aggregate,
    Choice,
    DescribedTables,
    Table,
    Target,
    Variant,
    format_fraction,
)
from snuh.training.validation_score import top_k_probability

DEFAULT = Choice(corpora=("ng20",), methods=("snuh", "ammi"), bits=(64,), seeds=(0,))
QUICK = replace(DEFAULT, methods=("snuh",))
MAX_POINTS = 2_000
MAP_SIZE = 1_000  # coordinates are integers from 0 to this
NEIGHBORS = 10

METHOD_DESCRIPTION = "t-SNE of the real values that are thresholded to bits, for test documents."
NEIGHBORS_DESCRIPTION = f"the fraction of the {NEIGHBORS} nearest points of a point that have its label"
DESCRIPTION = f"""{METHOD_DESCRIPTION} "snuh report" draws the maps.
In the table: {NEIGHBORS_DESCRIPTION}."""


def map_points(run: Run, encoder: Encoder, corpus: Corpus) -> dict[str, Any]:
    """Return label names, and (x, y, label index) of each labelled test document."""
    from sklearn.manifold import TSNE

    test = corpus.splits["test"]
    rows = [row for row, labels in enumerate(test.labels) if labels][:MAX_POINTS]
    first_labels = [min(test.labels[row]) for row in rows]
    names = sorted(set(first_labels))
    values = encoder.values(test.X[rows])
    perplexity = min(30, (len(rows) - 1) / 3)
    positions = TSNE(random_state=run.seed, init="pca", perplexity=perplexity).fit_transform(values)
    positions = (positions - positions.min(0)) / np.ptp(positions, axis=0).max()
    points = np.round(positions * MAP_SIZE).astype(int).tolist()
    return {
        "labels": names,
        "points": [[*point, names.index(label)] for point, label in zip(points, first_labels, strict=True)],
    }


def variants(choice: Choice) -> list[Variant]:
    """Return each method, with a map to compute."""
    return [Variant(method, method, artifact="map") for method in choice.methods]


def table(choice: Choice, variants: Sequence[Variant], rows: Sequence[Row]) -> DescribedTables:
    """Return how well each map keeps documents of a label together."""
    titles = ("corpus", "bits", "method", "seed", "points", "same label")
    lines = []
    for row in Aggregate(choice, rows).all_rows(variants):
        points = row["artifact_data"]["points"]
        fraction = format_fraction(same_label(points), digits=3)
        lines.append(
            (row["corpus"], str(row["bits"]), row["method"], str(row["seed"]), f"{len(points):,}", fraction)
        )
    return DescribedTables(DESCRIPTION, [Table(titles, lines)])


def same_label(points: Sequence[Sequence[int]]) -> float:
    """Return the mean fraction of equal labels among nearest points; a point is (x, y, label index)."""
    array = np.asarray(points)
    positions, labels = array[:, :2], array[:, 2]
    neighbors = min(NEIGHBORS, len(array) - 1)
    distances = ((positions[:, None] - positions[None]) ** 2).sum(2)
    np.fill_diagonal(distances, np.iinfo(distances.dtype).max)
    weights = top_k_probability(distances, neighbors)  # integer coordinates: many distances tie
    return float(weights[labels == labels[:, None]].sum(dtype=np.float64) / (neighbors * len(array)))


MAP = Target("map", DEFAULT, QUICK, variants, table)
