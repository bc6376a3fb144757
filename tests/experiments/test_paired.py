"""Differences of pairs, against SciPy's own interval of paired samples."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ttest_rel

from snuh.experiments.paired import difference


def test_interval_is_that_of_a_paired_t_test() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.random(7), rng.random(7)
    interval = ttest_rel(first, second).confidence_interval(0.95)
    found = difference(first.tolist(), second.tolist())
    assert found is not None
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    assert found.mean == pytest.approx((first - second).mean())
    assert found.pairs == 7


def test_a_difference_is_clear_where_its_interval_leaves_out_nothing() -> None:
    clear = difference([0.70, 0.71, 0.72], [0.60, 0.61, 0.63])
    unclear = difference([0.70, 0.60, 0.72], [0.60, 0.71, 0.63])
    assert clear is not None and clear.is_clear
    assert unclear is not None and not unclear.is_clear


def test_one_pair_says_nothing() -> None:
    assert difference([0.7], [0.6]) is None
