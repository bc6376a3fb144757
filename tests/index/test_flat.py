from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from snuh.codes import unpack
from snuh.errors import InputError
from snuh.index import SearchResult, nearest, scan, scan_many

FEW_VALUES = st.sampled_from([0, 1, 3, 255])  # so that ties and equal codes are common


def brute_force(
    query: np.ndarray,
    codes: np.ndarray,
    *,
    k: int,
    allowed: np.ndarray | None = None,
    radius: int | None = None,
) -> list[tuple[int, int]]:
    """Sort all eligible (distance, row) pairs and take the first k."""
    distances = (unpack(codes) != unpack(query[None])).sum(axis=1)
    pairs = sorted((int(distance), row) for row, distance in enumerate(distances))
    candidates = [(d, row) for d, row in pairs if allowed is None or allowed[row]]
    return [(d, row) for d, row in candidates if radius is None or d <= radius][:k]


def pairs_of(result: SearchResult) -> list[tuple[int, int]]:
    return list(zip(result.distances.tolist(), result.rows.tolist(), strict=True))


def some_codes(rows: int, *, bytes_: int = 8, seed: int = 0) -> np.ndarray:
    """Codes with many duplicates and many ties."""
    return np.random.default_rng(seed).integers(0, 4, (rows, bytes_), dtype=np.uint8)


@st.composite
def searches(draw: st.DrawFn) -> dict[str, object]:
    width, rows = draw(st.integers(1, 64)), draw(st.integers(0, 40))
    return {
        "queries": draw(arrays.arrays(np.uint8, (draw(st.integers(0, 4)), width), elements=FEW_VALUES)),
        "codes": draw(arrays.arrays(np.uint8, (rows, width), elements=FEW_VALUES)),
        "k": draw(st.integers(1, 50)),
        "allowed": draw(st.none() | arrays.arrays(np.bool_, rows)),
        "radius": draw(st.none() | st.integers(0, 8 * width + 1)),
    }


@given(searches())
def test_a_scan_equals_sorting_everything_by_distance_and_row(search: dict) -> None:
    queries = search.pop("queries")
    for query in queries:
        result = scan(query, **search)
        assert result.rows.dtype == np.int64
        assert result.distances.dtype == np.uint16
        assert pairs_of(result) == brute_force(query, **search)


@given(searches())
def test_scanning_for_many_equals_scanning_for_each(search: dict) -> None:
    queries, codes = search.pop("queries"), search.pop("codes")
    many = scan_many(queries, codes, **search)
    assert [pairs_of(found) for found in many] == [pairs_of(scan(one, codes, **search)) for one in queries]


@pytest.mark.parametrize("bytes_", [1, 3, 8, 16, 24])
@pytest.mark.parametrize("k", [1, 5, 300, 5000])
def test_a_scan_of_many_groups_equals_sorting(bytes_: int, k: int) -> None:
    codes = some_codes(3001, bytes_=bytes_)
    allowed = np.random.default_rng(1).random(3001) < 0.3
    assert pairs_of(scan(codes[7], codes, k=k)) == brute_force(codes[7], codes, k=k)
    filtered = {"k": k, "allowed": allowed, "radius": 3 * bytes_}
    assert pairs_of(scan(codes[7], codes, **filtered)) == brute_force(codes[7], codes, **filtered)


def test_codes_in_descending_order_of_distance_are_all_considered() -> None:
    bits = np.tril(np.ones((512, 512), dtype=bool))[::-1]  # 512 ones, 511, ... 1
    codes = np.packbits(np.repeat(bits, 9, axis=0), axis=1)
    query = np.zeros(64, dtype=np.uint8)
    assert pairs_of(scan(query, codes, k=20)) == brute_force(query, codes, k=20)


@pytest.mark.parametrize("queries", [1, 3, 70])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_neither_threads_nor_chunks_change_a_result(
    queries: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = some_codes(4000)
    whole = [pairs_of(scan(query, codes, k=50)) for query in codes[:queries]]
    monkeypatch.setattr("snuh.index.flat.CHUNK_ROWS", 300)
    monkeypatch.setattr("snuh.index.flat.usable_processors", lambda: threads)
    assert [pairs_of(found) for found in scan_many(codes[:queries], codes, k=50)] == whole


def test_k_rows_are_found_where_few_are_allowed() -> None:
    codes = some_codes(5000)
    allowed = np.zeros(5000, dtype=bool)
    allowed[[4999, 17, 2500]] = True
    assert sorted(scan(codes[0], codes, k=3, allowed=allowed).rows.tolist()) == [17, 2500, 4999]


def test_memory_mapped_codes_are_scanned(tmp_path: Path) -> None:
    codes = some_codes(1000)
    np.save(tmp_path / "codes.npy", codes)
    mapped = np.load(tmp_path / "codes.npy", mmap_mode="r")
    assert pairs_of(scan(codes[3], mapped, k=9)) == pairs_of(scan(codes[3], codes, k=9))


def test_codes_at_an_odd_address_are_scanned() -> None:
    buffer = np.zeros(8001, dtype=np.uint8)
    codes = buffer[1:].reshape(1000, 8)
    codes[:] = some_codes(1000)
    assert pairs_of(scan(codes[3], codes, k=9)) == brute_force(codes[3], codes, k=9)


def test_every_other_code_of_an_array_is_scanned() -> None:
    codes = some_codes(500)
    assert pairs_of(scan(codes[3], codes[::2], k=9)) == brute_force(codes[3], codes[::2], k=9)


def test_neighbors_are_the_rows_of_a_scan() -> None:
    codes = some_codes(100)
    found = nearest(codes[:9], codes, k=20)
    assert found.rows.shape == found.distances.shape == (9, 20)
    for query, rows, distances in zip(codes, found.rows, found.distances, strict=False):
        assert list(zip(distances.tolist(), rows.tolist(), strict=True)) == brute_force(query, codes, k=20)


def test_search_orders_ties_by_row() -> None:
    codes = np.array([[255], [1], [0], [2], [0]], dtype=np.uint8)
    found = nearest(np.array([[0]], dtype=np.uint8), codes, k=4)
    assert found.rows.tolist() == [[2, 4, 1, 3]]
    assert found.distances.tolist() == [[0, 0, 1, 1]]


@pytest.mark.parametrize(("queries", "rows", "expected"), [(2, 0, (2, 0)), (0, 3, (0, 3)), (2, 3, (2, 3))])
def test_there_are_at_most_as_many_neighbors_as_codes(
    queries: int, rows: int, expected: tuple[int, int]
) -> None:
    found = nearest(some_codes(queries), some_codes(rows), k=5)
    assert found.rows.shape == found.distances.shape == expected


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"k": 0}, "k must be at least 1, got 0"),
        ({"radius": -1}, "radius must be at least 0, got -1"),
        ({"allowed": np.ones(2, dtype=bool)}, r"a bool for each of the 3 codes, got bool of shape \(2,\)"),
        ({"allowed": np.ones(3)}, "a bool for each of the 3 codes, got float64"),
        ({"codes": some_codes(3, bytes_=4)}, "queries have 64 bits and the codes 32"),
        ({"query": some_codes(1)}, r"one code of shape \(bits / 8,\), got shape \(1, 8\)"),
        ({"query": np.zeros(8)}, "codes must be uint8"),
    ],
)
def test_invalid_search_parameters_are_refused(changed: dict, message: str) -> None:
    search = {"query": some_codes(1)[0], "codes": some_codes(3), "k": 1} | changed
    with pytest.raises(InputError, match=message):
        scan(**search)
