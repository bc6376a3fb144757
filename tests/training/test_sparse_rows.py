"""Rows taken and turned, against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from snuh.training.sparse_ops import SparseRows, take_rows, transpose


def assert_same(got: SparseRows, expected: sparse.csr_matrix) -> None:
    assert got.shape == expected.shape
    assert_array_equal(got.indptr, expected.indptr)
    assert_array_equal(got.indices, expected.indices)
    assert_array_equal(got.data, expected.data)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("docs", "terms", "share"), [(30, 17, 0.2), (1, 5, 1.0), (8, 3, 0.0)])
def test_rows_are_taken_and_turned_as_scipy_does(docs: int, terms: int, share: float, dtype: type) -> None:
    rng = np.random.default_rng(0)
    X = sparse.random(docs, terms, density=share, format="csr", random_state=rng, dtype=dtype)
    X = sparse.csr_matrix(X)
    for chosen in (rng.integers(0, docs, 40), np.arange(docs), np.empty(0, dtype=np.int64)):
        taken = take_rows(X, chosen)
        assert_same(taken, X[chosen])
        assert_same(transpose(taken), X[chosen].T.tocsr())
