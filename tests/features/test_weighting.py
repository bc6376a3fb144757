from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from snuh.errors import InputError
from snuh.features import check_matrix, unit_rows

DENSE = np.array([[0.0, 3.0, 4.0], [0.0, 0.0, 0.0], [1.0, 0.0, -1.0]])


@pytest.mark.parametrize(
    "make",
    [np.array, np.ndarray.tolist, sparse.csr_matrix, sparse.csc_matrix, sparse.coo_array, sparse.lil_matrix,
     lambda dense: dense.astype(object), lambda dense: sparse.csr_array(dense.astype(np.int8))],
)  # fmt: skip
def test_every_kind_of_matrix_becomes_float32_csr(make: Any) -> None:
    matrix = check_matrix(make(DENSE))
    assert isinstance(matrix, sparse.csr_matrix)
    assert matrix.dtype == np.float32
    assert matrix.indices.dtype == matrix.indptr.dtype == np.int32
    assert matrix.nnz == 4
    np.testing.assert_array_equal(matrix.toarray(), DENSE)


def test_unsorted_duplicate_and_zero_entries_are_cleaned_up_in_a_copy() -> None:
    data, columns = np.array([1.0, 2.0, 0.0, 3.0], np.float32), np.array([2, 0, 1, 2])
    untidy = sparse.csr_matrix((data, columns, np.array([0, 4])), shape=(1, 3))
    tidy = check_matrix(untidy)
    assert tidy.has_canonical_format and tidy.indices.tolist() == [0, 2] and tidy.data.tolist() == [2.0, 4.0]
    assert untidy.indices.tolist() == [2, 0, 1, 2] and untidy.data.tolist() == [1.0, 2.0, 0.0, 3.0]


def test_a_canonical_matrix_is_not_copied() -> None:
    tidy = check_matrix(DENSE)
    assert np.shares_memory(check_matrix(tidy).data, tidy.data)


@pytest.mark.parametrize("make", [np.array, sparse.csr_matrix, sparse.csc_array])
@pytest.mark.parametrize(
    ("value", "name"), [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "inf"), (1e39, "inf")]
)
def test_the_first_non_finite_number_is_reported(make: Any, value: float, name: str) -> None:
    broken = DENSE.copy()
    broken[2, 1] = broken[2, 2] = value
    with pytest.raises(InputError, match=f"{name}.* in row 2, column 1"):
        check_matrix(make(broken))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.zeros(3), "Reshape your data"),
        (np.float64(1), "0-D"),
        (np.zeros((2, 2, 2)), "3-D"),
        (np.zeros((0, 3)), r"at least 1 document, got 0 sample\(s\)"),
        (sparse.csr_matrix((0, 3)), r"0 sample\(s\)"),
        (np.zeros((12, 0)), r"0 feature\(s\) \(shape=\(12, 0\)\) while a minimum of 1 is required."),
        (np.zeros((2, 2), complex), "Complex data not supported"),
        (sparse.csr_matrix(np.ones((2, 2), complex)), "Complex data not supported"),
        ([["a", "b"]], "matrix of numbers"),
        ([[1, 2], [3]], "matrix of numbers"),
    ],
)
def test_anything_but_a_matrix_of_numbers_is_refused(rows: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        check_matrix(rows)
    assert "\n" not in str(caught.value)


def test_an_element_that_is_not_a_number_is_a_type_error_as_in_scikit_learn() -> None:
    rows = DENSE.astype(object)
    rows[0, 0] = {"foo": "bar"}
    with pytest.raises(TypeError, match=r"argument must be .* string.* number"):
        check_matrix(rows)


def test_unit_rows_have_norm_one_and_zero_rows_stay_zero() -> None:
    rows = unit_rows(DENSE)
    half = 0.5**0.5
    expected = np.array([[0, 0.6, 0.8], [0, 0, 0], [half, 0, -half]])
    np.testing.assert_allclose(rows.toarray(), expected, rtol=1e-6)
    assert rows.dtype == np.float32


def test_unit_rows_do_not_overflow() -> None:
    np.testing.assert_allclose(unit_rows([[3e38, 3e38]]).toarray(), [[0.5**0.5, 0.5**0.5]], rtol=1e-6)
