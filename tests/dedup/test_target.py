from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from snuh.dedup import Duplicates
from snuh.dedup.near_duplicates import THRESHOLD_STEPS, drop_most_similar, strictest_sufficient


def duplicates_of_the_first(similarity: np.ndarray, threshold: float) -> Duplicates:
    """Return documents that duplicate document 0 if their similarity reaches the threshold."""
    is_dropped = similarity >= np.float32(threshold)
    representative = np.where(is_dropped, 0, np.arange(len(similarity)))
    return Duplicates(representative, np.where(is_dropped, similarity, 1).astype(np.float32), threshold, 0, 0)


@given(st.lists(st.floats(0.5, 1.0, width=32), min_size=1, max_size=30), st.integers(1, 30))
def test_the_threshold_is_sufficient_and_the_next_step_is_not(values: list[float], drops: int) -> None:
    similarity = np.array([0.0, *values], dtype=np.float32)
    thresholds: list[float] = []

    def find(threshold: float) -> Duplicates:
        thresholds.append(threshold)
        return duplicates_of_the_first(similarity, threshold)

    loosest = duplicates_of_the_first(similarity, 0.5)
    found = strictest_sufficient(find, loosest, drops=drops)
    assert len(thresholds) <= 1 + np.log2(THRESHOLD_STEPS)
    if len(values) < drops:
        assert found is loosest
        return
    assert (~found.kept).sum() >= drops
    step = round((found.threshold - 0.5) / 0.5 * THRESHOLD_STEPS)
    if step < THRESHOLD_STEPS:
        stricter = duplicates_of_the_first(similarity, 0.5 + 0.5 * (step + 1) / THRESHOLD_STEPS)
        assert (~stricter.kept).sum() < drops


def test_exact_duplicates_are_tried_first() -> None:
    thresholds: list[float] = []

    def find(threshold: float) -> Duplicates:
        thresholds.append(threshold)
        return duplicates_of_the_first(np.array([0, 1, 1, 0.9]), threshold)

    strictest_sufficient(find, duplicates_of_the_first(np.array([0, 1, 1, 0.9]), 0.8), drops=2)
    assert thresholds == [1.0]


def test_the_least_similar_and_then_the_preferred_are_restored() -> None:
    found = duplicates_of_the_first(np.array([0.0, 0.9, 0.8, 0.9, 0.95], dtype=np.float32), 0.5)
    fewer = drop_most_similar(found, drops=2, rank=np.arange(5))
    assert fewer.kept.tolist() == [True, True, True, False, False]
    assert fewer.similarity.tolist() == [1, 1, 1, np.float32(0.9), np.float32(0.95)]
    assert fewer.threshold == np.float32(0.9)
    other = drop_most_similar(found, drops=2, rank=np.array([0, 4, 3, 2, 1]))
    assert other.kept.tolist() == [True, False, True, True, False]
