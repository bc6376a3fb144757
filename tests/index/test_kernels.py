"""The compiled kernels and those of NumPy return the same, to the last bit."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernels import VERSIONS, using

from snuh.index import kernels, kernels_numpy, scan_many
from snuh.index.bm25 import Part, WordScores, bm25_scores, build_postings
from snuh.index.fusion import CodedRows, Standard, best_rows, score_table
from snuh.index.ivf import IVF


def on_both(function: Callable[[], Any]) -> list[Any]:
    results = []
    for version in VERSIONS:
        with using(version):
            results.append(function())
    return results


def test_both_modules_have_the_same_functions_with_the_same_arguments() -> None:
    functions = {
        name: function
        for name, function in vars(kernels_numpy).items()
        if inspect.isfunction(function) and not name.startswith("_")
    }
    assert len(functions) == 5
    for name, function in functions.items():
        compiled = getattr(kernels, name).py_func
        assert list(inspect.signature(compiled).parameters) == list(inspect.signature(function).parameters)


@settings(max_examples=50)
@given(seed=st.integers(0, 10_000), terms=st.integers(1, 6))
def test_scores_of_words_are_equal(seed: int, terms: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.poisson(0.5, size=(30, terms))
    rows, columns = np.nonzero(matrix)
    postings = build_postings(
        rng.integers(0, 2**63, terms).astype(np.uint64),
        np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=30))]),
        columns.astype(np.int32),
        matrix[rows, columns].astype(np.int32),
        matrix.sum(axis=1).astype(np.int32),
    )
    weights = {key: float(rng.random()) for key in postings.keys.tolist()}
    (left,), (right,) = on_both(lambda: bm25_scores([Part(postings)], weights))
    np.testing.assert_array_equal(left.dense(30), right.dense(30), strict=True)


@settings(max_examples=50)
@given(seed=st.integers(0, 10_000), width=st.integers(1, 16), k=st.integers(0, 60), masked=st.booleans())
def test_the_best_sums_are_equal(seed: int, width: int, k: int, masked: bool) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 4, (50, width), dtype=np.uint8)
    margins = np.round(rng.normal(size=8 * width), 1)
    by_word = rng.poisson(0.3, 50).astype(np.float32)
    words = WordScores(np.flatnonzero(by_word).astype(np.int32), by_word[by_word > 0])
    coded = CodedRows(codes, rng.random(50) < 0.8 if seed % 2 else None)
    table, scales = score_table(margins, width), (Standard(0.3, 1.7), Standard(0.1, 0.3))
    allowed = rng.random(50) < 0.5 if masked else None
    best, other = on_both(lambda: best_rows(words, coded, table, scales, k=k, allowed=allowed))
    for one, two in zip(best, other, strict=True):
        np.testing.assert_array_equal(one, two, strict=True)


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), width=st.sampled_from([1, 2, 4, 8, 12, 16]), k=st.integers(1, 700))
def test_scans_are_equal(seed: int, width: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 4, (600, width), dtype=np.uint8)
    allowed = rng.random(600) < 0.5 if seed % 2 else None

    def search() -> list[Any]:
        index = IVF.build(codes, n_lists=20)
        results = scan_many(codes[:3], codes, k=k, allowed=allowed)
        results.append(index.search(codes[3], codes, k=k, n_probe=2, allowed=allowed))
        return [
            *index.arrays().values(),
            *(array for found in results for array in (found.rows, found.distances)),
        ]

    for one, two in zip(*on_both(search), strict=True):
        np.testing.assert_array_equal(one, two, strict=True)
