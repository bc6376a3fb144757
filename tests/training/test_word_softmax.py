"""The softmax over the vocabulary against NumPy, in both precisions and where a float comes to its ends."""

from __future__ import annotations

import numpy as np
import pytest

from snuh._numba import njit
from snuh.training.sparse_ops import exp, explain_words

DOCS, TERMS = 7, 301
FIRST = np.array([0, 3, 3, 10, 40, 41, 60, 100], dtype=np.int32)  # the second document is empty


@njit()
def _exp_all(x, y):  # type: ignore[no-untyped-def]
    for i in range(len(x)):
        y[i] = exp(x[i])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exp_is_right_wherever_it_has_a_normal_value(dtype: type[np.floating]) -> None:
    x = np.concatenate([np.linspace(-87.0, 0.0, 20_001), [-1e-30, -0.0]]).astype(dtype)
    y = np.empty_like(x)
    _exp_all(x, y)
    np.testing.assert_allclose(y, np.exp(x.astype(np.float64)), rtol=4 * np.finfo(dtype).eps)


def test_exp_of_what_is_far_below_is_next_to_nothing_and_of_no_number_is_none() -> None:
    x = np.array([-88.0, -1e4, -np.inf, np.nan], dtype=np.float32)
    y = np.empty_like(x)
    _exp_all(x, y)
    assert (y[:3] >= 0).all() and (y[:3] < 1e-37).all()
    assert np.isnan(y[3])


@pytest.mark.parametrize(("dtype", "spread"), [(np.float32, 1.0), (np.float32, 60.0), (np.float64, 1.0)])
def test_what_the_logits_become(dtype: type[np.floating], spread: float) -> None:
    rng = np.random.default_rng(0)
    bias = rng.normal(size=TERMS).astype(dtype)
    logits = (spread * rng.normal(size=(DOCS, TERMS))).astype(dtype)
    words = np.concatenate([rng.permutation(TERMS)[:n] for n in np.diff(FIRST)]).astype(np.int32)
    exact = logits.astype(np.float64) + bias
    of_present, largest, total = np.empty((3, DOCS), dtype=dtype)

    explain_words(logits, bias, FIRST, words, of_present, largest, total)

    e = np.exp(exact - exact.max(axis=1, keepdims=True))
    close = {"rtol": 1e4 * np.finfo(dtype).eps, "atol": 1e3 * np.finfo(dtype).eps}
    np.testing.assert_allclose(largest, exact.max(axis=1), **close)
    np.testing.assert_allclose(total, e.sum(axis=1), **close)
    for d in range(DOCS):
        own = words[FIRST[d] : FIRST[d + 1]]
        np.testing.assert_allclose(of_present[d], exact[d, own].sum(), **close)
        if len(own):
            e[d, own] -= e[d].sum() / len(own)
    np.testing.assert_allclose(logits, e, **close)


def test_a_loss_that_is_no_number_stays_none() -> None:
    logits = np.zeros((1, TERMS), dtype=np.float32)
    logits[0, 17] = np.nan  # of a word that the document does not have
    sums = np.empty((3, 1), dtype=np.float32)
    words = np.array([3], dtype=np.int32)
    explain_words(logits, np.zeros(TERMS, dtype=np.float32), np.array([0, 1], dtype=np.int32), words, *sums)
    assert np.isnan(sums[2, 0])
