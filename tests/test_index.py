from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from snuh.codes import unpack
from snuh.errors import InputError
from snuh.index import nearest


def brute_force(query: np.ndarray, codes: np.ndarray, k: int) -> list[tuple[int, int]]:
    """Sort all (distance, row) pairs and take the first k."""
    differing = unpack(codes) != unpack(query[None])
    return sorted((int(row.sum()), number) for number, row in enumerate(differing))[:k]


@given(st.data())
def test_search_equals_sorting_everything_by_distance_and_row(data: st.DataObject) -> None:
    width = data.draw(st.sampled_from([1, 2, 8]))
    few_values = st.sampled_from([0, 1, 3, 255])  # so that ties and equal codes are common
    codes = data.draw(arrays.arrays(np.uint8, (data.draw(st.integers(1, 30)), width), elements=few_values))
    queries = data.draw(arrays.arrays(np.uint8, (data.draw(st.integers(0, 4)), width), elements=few_values))
    k = data.draw(st.integers(1, 35))
    found = nearest(queries, codes, k=k)
    assert found.rows.shape == found.distances.shape == (len(queries), min(k, len(codes)))
    for query, rows, distances in zip(queries, found.rows, found.distances, strict=True):
        assert list(zip(distances.tolist(), rows.tolist(), strict=True)) == brute_force(query, codes, k)


def test_search_orders_ties_by_row() -> None:
    codes = np.array([[255], [1], [0], [2], [0]], dtype=np.uint8)
    found = nearest(np.array([[0]], dtype=np.uint8), codes, k=4)
    assert found.rows.tolist() == [[2, 4, 1, 3]]
    assert found.distances.tolist() == [[0, 0, 1, 1]]


def test_search_does_not_depend_on_the_size_of_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    codes, queries = (rng.integers(0, 4, (count, 8), dtype=np.uint8) for count in (100, 9))
    whole = nearest(queries, codes, k=20)
    monkeypatch.setattr("snuh.codes.BLOCK_PAIRS", 250)
    np.testing.assert_array_equal(nearest(queries, codes, k=20).rows, whole.rows)


def test_an_empty_database_has_no_neighbors() -> None:
    found = nearest(np.zeros((2, 8), dtype=np.uint8), np.zeros((0, 8), dtype=np.uint8), k=5)
    assert found.rows.shape == found.distances.shape == (2, 0)


def test_search_for_no_neighbors_is_refused() -> None:
    codes = np.zeros((1, 8), dtype=np.uint8)
    with pytest.raises(InputError, match="k must be at least 1, got 0"):
        nearest(codes, codes, k=0)


def test_queries_of_another_length_are_refused() -> None:
    with pytest.raises(InputError, match="queries have 64 bits and the codes 32"):
        nearest(np.zeros((1, 8), dtype=np.uint8), np.zeros((3, 4), dtype=np.uint8), k=1)
