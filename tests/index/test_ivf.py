from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snuh.codes import hamming
from snuh.errors import InputError
from snuh.index import SearchResult, scan
from snuh.index.ivf import IVF, nearest_centroids
from snuh.io import load_arrays, save_arrays


def some_codes(rows: int, *, bytes_: int = 8, seed: int = 0) -> np.ndarray:
    """Codes around a few centroids: one or two bits differ, and many codes are equal."""
    rng = np.random.default_rng(seed)
    centroids = rng.integers(0, 256, (5, bytes_), dtype=np.uint8)
    codes = centroids[rng.integers(0, 5, rows)]
    codes[np.arange(rows), rng.integers(0, bytes_, rows)] ^= rng.choice([0, 1, 3], rows).astype(np.uint8)
    return codes


def pairs_of(result: SearchResult) -> list[tuple[int, int]]:
    return list(zip(result.distances.tolist(), result.rows.tolist(), strict=True))


@contextmanager
def only_lists() -> Iterator[None]:
    """Never fall back to a scan of all rows, which small indexes would soon do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("snuh.index.ivf.MAX_SCANNED_FRACTION", 2.0)
        yield


@settings(max_examples=60)
@given(
    rows=st.integers(0, 300),
    width=st.integers(1, 20),
    count=st.integers(1, 20),
    k=st.integers(1, 400),
    fraction=st.none() | st.floats(0, 1),
    radius=st.none() | st.integers(0, 30),
    seed=st.integers(0, 1000),
)
def test_reading_every_list_equals_a_scan(
    rows: int, width: int, count: int, k: int, fraction: float | None, radius: int | None, seed: int
) -> None:
    codes = some_codes(rows, bytes_=width, seed=seed)
    query = some_codes(1, bytes_=width, seed=seed)[0]
    allowed = None if fraction is None else np.random.default_rng(seed).random(rows) < fraction
    index = IVF.build(codes, n_lists=count)
    search = {"k": k, "allowed": allowed, "radius": radius}
    expected = pairs_of(scan(query, codes, **search))
    assert pairs_of(index.search(query, codes, n_probe=count, **search)) == expected
    with only_lists():
        assert pairs_of(index.search(query, codes, n_probe=count, **search)) == expected


@settings(max_examples=60)
@given(k=st.integers(1, 40), seed=st.integers(0, 1000), reads_only_lists=st.booleans())
def test_k_rows_are_found_however_few_are_allowed(k: int, seed: int, reads_only_lists: bool) -> None:
    codes = some_codes(1000, seed=seed)
    rng = np.random.default_rng(seed)
    far = np.argsort(hamming(codes[:1], codes)[0], kind="stable")[-200:]
    allowed = np.zeros(1000, dtype=bool)
    allowed[rng.choice(far, k, replace=False)] = True
    index = IVF.build(codes, n_lists=50)
    if reads_only_lists:
        with only_lists():
            found = index.search(codes[0], codes, k=k, n_probe=1, allowed=allowed)
    else:
        found = index.search(codes[0], codes, k=k, n_probe=1, allowed=allowed)
    assert sorted(found.rows.tolist()) == np.flatnonzero(allowed).tolist()


def test_a_radius_shortens_the_result_without_reading_more_lists() -> None:
    codes = np.random.default_rng(0).integers(0, 256, (5000, 8), dtype=np.uint8)
    index = IVF.build(codes, n_lists=200)
    whole = pairs_of(index.search(codes[0], codes, k=40, n_probe=4))
    near = index.search(codes[0], codes, k=40, n_probe=4, radius=18)
    assert pairs_of(near) == [pair for pair in whole if pair[0] <= 18]
    assert 0 < len(near.rows) < len(whole)
    assert len(near.rows) < len(scan(codes[0], codes, k=40, radius=18).rows)  # some of which the lists miss


def test_one_list_holds_the_codes_around_its_centroid() -> None:
    rng = np.random.default_rng(0)
    codes = np.repeat(rng.integers(0, 256, (40, 8), dtype=np.uint8), 50, axis=0)
    index = IVF.build(codes, n_lists=40)
    found = index.search(codes[120], codes, k=50, n_probe=1)
    assert pairs_of(found) == [(0, row) for row in range(100, 150)]


def test_every_row_is_in_the_list_of_its_nearest_centroid_in_ascending_order() -> None:
    codes = some_codes(700)
    index = IVF.build(codes, n_lists=30)
    assignments = hamming(codes, index.centroids).argmin(axis=1)
    for number in range(len(index.centroids)):
        rows = index.rows[index.offsets[number] : index.offsets[number + 1]]
        assert rows.tolist() == np.flatnonzero(assignments == number).tolist()


def test_an_index_can_be_rebuilt_from_its_assignments() -> None:
    index = IVF.build(some_codes(700), n_lists=30)
    again = IVF.from_assignments(index.centroids, index.assignments())
    for name, array in index.arrays().items():
        np.testing.assert_array_equal(array, again.arrays()[name])


def test_an_index_of_no_codes_has_a_list_for_those_that_are_added() -> None:
    index = IVF.build(some_codes(0))
    assert len(index.centroids) == 1
    assert nearest_centroids(some_codes(3), index.centroids).tolist() == [0, 0, 0]
    without_lists = {"centroids": np.zeros((0, 8), dtype=np.uint8), "offsets": np.zeros(1, dtype=np.int64)}
    with pytest.raises(InputError, match="needs at least one list: build it again"):
        IVF.from_arrays(index.arrays() | without_lists)


def test_equal_seeds_build_equal_indexes(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = np.random.default_rng(0).integers(0, 256, (3000, 8), dtype=np.uint8)
    first = IVF.build(codes, n_lists=20, seed=5).arrays()
    monkeypatch.setattr("snuh.index.ivf.CHUNK_ROWS", 100)
    again = IVF.build(codes, n_lists=20, seed=5).arrays()
    other = IVF.build(codes, n_lists=20, seed=6).arrays()
    for name, array in first.items():
        np.testing.assert_array_equal(array, again[name])
    assert not np.array_equal(first["centroids"], other["centroids"])


def test_a_centroid_is_the_majority_of_its_codes() -> None:
    codes = np.array([[0b1110], [0b1101], [0b1011], [0b11110000], [0b11010000]], dtype=np.uint8)
    index = IVF.build(codes[:3], n_lists=1)
    assert index.centroids.tolist() == [[0b1111]]


def test_an_index_takes_four_bytes_per_document() -> None:
    index = IVF.build(some_codes(10_000), n_lists=10)
    assert sum(array.nbytes for array in index.arrays().values()) < 5 * 10_000


def test_a_saved_index_finds_the_same(tmp_path) -> None:
    codes = some_codes(2000)
    index = IVF.build(codes, n_lists=100)
    save_arrays(tmp_path / "ivf.safetensors", index.arrays())
    loaded = IVF.from_arrays(load_arrays(tmp_path / "ivf.safetensors"))
    for query in codes[:5]:
        found = loaded.search(query, codes, k=10, n_probe=2)
        assert pairs_of(found) == pairs_of(index.search(query, codes, k=10, n_probe=2))


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("rows", np.array([0, 1, 3], dtype=np.int32)),  # would be read beyond the end of the codes
        ("rows", np.array([0, 1, -1], dtype=np.int32)),
        ("rows", np.array([0, 1], dtype=np.int32)),
        ("rows", np.array([0, 1, 2], dtype=np.int64)),
        ("offsets", np.array([0, 4, 3], dtype=np.int64)),
        ("offsets", np.array([0, 3], dtype=np.int64)),
        ("offsets", np.array([1, 2, 3], dtype=np.int64)),
        ("centroids", np.zeros(2, dtype=np.uint8)),
    ],
)
def test_inconsistent_arrays_are_refused(name: str, array: np.ndarray) -> None:
    arrays = {
        "centroids": np.zeros((2, 8), dtype=np.uint8),
        "offsets": np.array([0, 1, 3], dtype=np.int64),
        "rows": np.array([2, 0, 1], dtype=np.int32),
    }
    IVF.from_arrays(arrays)
    with pytest.raises(InputError, match="IVF index"):
        IVF.from_arrays(arrays | {name: array})


def test_codes_that_the_index_was_not_built_on_are_refused() -> None:
    index = IVF.build(some_codes(100))
    with pytest.raises(InputError, match="built on 100 codes of 64 bits, got 101 of 64: build it again"):
        index.search(some_codes(1)[0], some_codes(101), k=1, n_probe=1)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_probe": 0}, "n_probe must be at least 1, got 0"),
        ({"k": 0}, "k must be at least 1, got 0"),
        ({"radius": -2}, "radius must be at least 0, got -2"),
        ({"allowed": np.ones(99, dtype=bool)}, "a bool for each of the 100 codes"),
    ],
)
def test_invalid_search_parameters_are_refused(changed: dict, message: str) -> None:
    codes = some_codes(100)
    with pytest.raises(InputError, match=message):
        IVF.build(codes).search(codes[0], codes, **{"k": 1, "n_probe": 1} | changed)


def test_zero_lists_are_refused() -> None:
    with pytest.raises(InputError, match="n_lists must be at least 1, got 0"):
        IVF.build(some_codes(10), n_lists=0)
