"""Differences of pairs, against SciPy's own interval of paired samples."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ttest_rel

from snuh.experiments.report.paired_differences import t_interval


def test_interval_is_that_of_a_paired_t_test() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.random(7), rng.random(7)
    interval = ttest_rel(first, second).confidence_interval(0.95)
    found = t_interval((first - second).tolist())
    assert found is not None
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    assert found.mean == pytest.approx((first - second).mean())
    assert found.count == 7


def test_a_difference_is_clear_where_its_interval_leaves_out_nothing() -> None:
    clear, unclear = t_interval([0.10, 0.10, 0.09]), t_interval([0.10, -0.11, 0.09])
    assert clear is not None and clear.is_significant
    assert unclear is not None and not unclear.is_significant


def test_two_that_happen_to_be_alike_are_not_clear() -> None:
    alike = t_interval([0.10, 0.1001])
    assert alike is not None and alike.low > 0 and not alike.is_significant


def test_one_says_nothing() -> None:
    assert t_interval([0.1]) is None
