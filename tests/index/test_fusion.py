"""The sum of standardized scores, and its best rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snuh.codes import pack, unpack
from snuh.index.fusion import Standard, code_scores, standardize, top_rows


@pytest.mark.parametrize("bits", [8, 64, 128])
def test_code_scores_are_the_asymmetric_ones_up_to_a_constant(bits: int) -> None:
    rng = np.random.default_rng(bits)
    codes, margins = pack(rng.random((50, bits)) < 0.5), rng.normal(size=bits)
    margins[0] = np.inf  # a constant bit
    weights = np.where(np.isfinite(margins), np.abs(margins), 0.0)
    cost = (unpack(codes) != (margins > 0)) @ weights
    np.testing.assert_allclose(code_scores(codes, margins), weights.sum() - 2 * cost, rtol=1e-4, atol=1e-4)


def test_scores_are_standardized_over_live_rows() -> None:
    scores = np.array([1, 2, 3, 100], dtype=np.float32)
    live = np.array([True, True, True, False])
    mean, inverse = standardize([(scores, live), (np.array([4], dtype=np.float32), None)])
    assert mean == pytest.approx(2.5) and 1 / inverse == pytest.approx(np.std([1, 2, 3, 4]))
    assert standardize([(np.ones(3, dtype=np.float32), None)]).inverse == 0.0
    assert standardize([]) == Standard(0.0, 0.0)


@given(
    words=st.lists(st.integers(0, 4), max_size=40), k=st.integers(0, 12), data=st.data(), masked=st.booleans()
)
def test_the_best_rows_are_those_of_a_full_sort(
    words: list[int], k: int, data: st.DataObject, masked: bool
) -> None:
    first = np.array(words, dtype=np.float32)
    second = np.array([data.draw(st.integers(0, 3)) for _ in words], dtype=np.float32)
    allowed = np.array([data.draw(st.booleans()) for _ in words], dtype=bool) if masked else None
    scales = (Standard(1.0, 2.0), Standard(0.5, 1.0))
    rows, sums = top_rows(first, second, scales, k=k, allowed=allowed)
    totals = (first - 1) * 2 + (second - 0.5)
    every = [row for row in range(len(words)) if allowed is None or allowed[row]]
    expected = sorted(every, key=lambda row: (-totals[row], row))[:k]
    assert rows.tolist() == expected
    np.testing.assert_allclose(sums, totals[expected])
