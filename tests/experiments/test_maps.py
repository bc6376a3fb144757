"""Maps: a point for each test document, and the fraction of neighbours with the same label."""

from __future__ import annotations

import numpy as np
import pytest

from snuh.experiments.corpora import Corpus
from snuh.experiments.maps import same_label
from snuh.experiments.runner import execute_run
from tests.experiments.worlds import tiny_run


def test_a_map_has_a_point_for_each_test_document(toy: Corpus) -> None:
    row = execute_run(tiny_run(method="itq", parameters={}, artifact="map"), toy, commit=None)
    points, names = row["artifact_data"]["points"], row["artifact_data"]["labels"]
    labels = [min(labels) for labels in toy.splits["test"].labels]
    assert [names[number] for _, _, number in points] == labels
    assert np.min(points) >= 0 and np.max(points) == 1_000
    assert same_label(points) == 0.4  # of the ten nearest the four others of a topic, and there are no more


def test_same_label_counts_the_nearest_points() -> None:
    apart = [[x, 0, 0] for x in range(20)] + [[x, 900, 1] for x in range(20)]
    mixed = [[x, y, y] for x in range(20) for y in (0, 1)]
    assert same_label(apart) == 1
    assert same_label(mixed) < 0.6


def test_same_label_takes_points_that_are_as_near_in_no_order() -> None:
    around = [[0, 0, 0]] + [[3 * x, 4 * y, 1 if x > 0 else 0] for x in (-1, 1) for y in (-1, 1)] * 3
    # From the centre, ten of twelve points that are all as near, half of them of its label.
    others = [same_label([*around[:1], *around[1:][turn:], *around[1:][:turn]]) for turn in range(12)]
    assert others == [pytest.approx(others[0])] * 12
