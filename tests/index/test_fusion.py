"""The best rows by words and codes are those of a full sort, however few of the codes were looked at."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.index.test_bm25 import postings_of

from snuh.codes import pack, unpack
from snuh.index.bm25 import Part, WordScores
from snuh.index.fusion import (
    BitCounts,
    CodedRows,
    Standard,
    best_rows,
    code_scores,
    score_table,
    standardize_words,
)


@pytest.mark.parametrize("bits", [8, 64, 128])
def test_code_scores_are_the_asymmetric_ones_up_to_a_constant(bits: int) -> None:
    rng = np.random.default_rng(bits)
    codes, margins = pack(rng.random((50, bits)) < 0.5), rng.normal(size=bits)
    margins[0] = np.inf  # a constant bit
    weights = np.where(np.isfinite(margins), np.abs(margins), 0.0)
    cost = (unpack(codes) != (margins > 0)) @ weights
    scores = code_scores(codes, score_table(margins, bits // 8))
    np.testing.assert_allclose(scores, weights.sum() - 2 * cost, rtol=1e-4, atol=1e-4)


def test_word_scores_are_standardized_over_live_rows() -> None:
    part = Part(postings_of([["a"]] * 5), np.array([True, True, True, True, False]))
    words = WordScores(np.array([1, 4, 2], dtype=np.int32), np.array([2, 100, 3], dtype=np.float32))
    mean, inverse = standardize_words([(part, words)])
    assert mean == pytest.approx(1.25) and 1 / inverse == pytest.approx(np.std([0, 2, 3, 0]))
    assert standardize_words([]) == Standard(0.0, 0.0)


@given(seed=st.integers(0, 10_000), rows=st.integers(0, 40))
def test_the_deviation_of_code_scores_follows_from_the_bits(seed: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    codes, margins = rng.integers(0, 256, (rows, 2), dtype=np.uint8), rng.normal(size=16)
    has_code = rng.random(rows) < 0.7
    scores = code_scores(codes[has_code], score_table(margins, 2)).astype(np.float64)
    coded = CodedRows(codes, has_code)
    mean, inverse = BitCounts.of(coded).standardize(margins)
    if len(scores) and scores.std() > 1e-3:
        assert mean == pytest.approx(scores.mean(), abs=1e-4)
        assert 1 / inverse == pytest.approx(scores.std(), rel=1e-4)
    else:
        assert inverse == 0.0

    later, has_later = codes.copy(), has_code.copy()
    changed = rng.random(rows) < 0.2
    later[changed], has_later[changed] = 255 - later[changed], ~has_later[changed]
    after = CodedRows(later, has_later)
    updated, counted = BitCounts.of(coded).updated(coded, after), BitCounts.of(after)
    assert updated.count == counted.count
    np.testing.assert_allclose(updated.products, counted.products)
    np.testing.assert_allclose(updated.sums, counted.sums)


@given(
    words=st.lists(st.integers(0, 3), max_size=40),
    scale=st.sampled_from([0.1, 1.0, 40.0]),
    k=st.integers(0, 12),
    masks=st.integers(0, 3),
    seed=st.integers(0, 1_000),
    floor=st.sampled_from([-np.inf, 0.0]),
)
def test_the_best_rows_are_those_of_a_full_sort(
    words: list[int], scale: float, k: int, masks: int, seed: int, floor: float
) -> None:
    rng, count = np.random.default_rng(seed), len(words)
    by_word = scale * np.array(words, dtype=np.float32)
    codes, margins = rng.integers(0, 4, (count, 1), dtype=np.uint8), np.round(rng.normal(size=8), 1)
    has_code = rng.random(count) < 0.7 if masks & 1 else None
    allowed = rng.random(count) < 0.7 if masks & 2 else None
    table = score_table(margins, 1)
    scales = (Standard(float(by_word.mean()) if words else 0.0, 2.0), Standard(0.5, 1.0))
    listed = np.flatnonzero(by_word).astype(np.int32)[::-1].copy()
    best = best_rows(
        WordScores(listed, by_word[listed]),
        CodedRows(codes, has_code),
        table,
        scales,
        k=k,
        allowed=allowed,
        floor=floor,
    )
    by_code = scales[1].apply(code_scores(codes, table))
    if has_code is not None:
        by_code[~has_code] = 0.0
    totals = scales[0].apply(by_word) + by_code
    every = [
        row
        for row in range(count)
        if (allowed is None or allowed[row])
        and (has_code is None or has_code[row] or by_word[row] > 0)
        and totals[row] >= floor - 1e-6
    ]
    expected = sorted(every, key=lambda row: (-round(totals[row], 4), row))[:k]
    np.testing.assert_allclose(best.sums, totals[expected], atol=1e-4)
    np.testing.assert_allclose(best.sums, totals[best.rows], atol=1e-4)
    assert len(set(best.rows.tolist())) == len(best.rows)
    np.testing.assert_array_equal(best.words, by_word[best.rows])
