from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from snuh.codes import (
    check_bits,
    check_codes,
    count_distances,
    hamming,
    hamming_blocks,
    hamming_pairs,
    pack,
    unpack,
)
from snuh.errors import InputError

WIDTHS = st.integers(1, 17)  # bytes: every word size, and odd ones
bit_matrices = WIDTHS.flatmap(
    lambda width: arrays.arrays(np.bool_, st.tuples(st.integers(0, 6), st.just(8 * width)))
)


@given(bit_matrices)
def test_unpack_returns_what_was_packed(bits: np.ndarray) -> None:
    codes = pack(bits)
    assert codes.dtype == np.uint8
    assert codes.shape == (len(bits), bits.shape[1] // 8)
    np.testing.assert_array_equal(unpack(codes, bits=bits.shape[1]), bits)


def test_the_first_bit_is_the_highest_of_the_first_byte() -> None:
    assert pack([[1, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0]]).tolist() == [[0b10000001, 0b01000000]]


@given(st.data())
def test_hamming_counts_the_bits_that_differ(data: st.DataObject) -> None:
    width = data.draw(WIDTHS)
    queries = data.draw(arrays.arrays(np.bool_, (3, 8 * width)))
    documents = data.draw(arrays.arrays(np.bool_, (5, 8 * width)))
    expected = (queries[:, None, :] != documents[None, :, :]).sum(axis=2)
    distances = hamming(pack(queries), pack(documents))
    assert distances.dtype == np.uint16
    np.testing.assert_array_equal(distances, expected)


@given(st.data())
def test_pairs_have_the_distances_of_the_diagonal(data: st.DataObject) -> None:
    width = data.draw(WIDTHS)
    left, right = (data.draw(arrays.arrays(np.uint8, (4, width))) for _ in range(2))
    np.testing.assert_array_equal(hamming_pairs(left, right), hamming(left, right).diagonal())


def test_hamming_reaches_the_longest_code() -> None:
    none, all_set = np.zeros((1, 64), dtype=np.uint8), np.full((1, 64), 255, dtype=np.uint8)
    assert hamming(none, all_set).tolist() == [[512]]


def test_hamming_takes_codes_that_are_a_view_of_other_memory() -> None:
    wide = np.arange(64, dtype=np.uint8).reshape(4, 16)
    view = wide[::2, 4:12]
    np.testing.assert_array_equal(hamming(view, view), hamming(view.copy(), view.copy()))


def test_blocks_cover_every_query_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("snuh.codes.BLOCK_PAIRS", 7)  # two queries at a time
    rng = np.random.default_rng(0)
    queries, codes = (rng.integers(0, 256, (count, 2), dtype=np.uint8) for count in (5, 3))
    blocks = list(hamming_blocks(queries, codes))
    assert [block.stop - block.start for block, _ in blocks] == [2, 2, 1]
    np.testing.assert_array_equal(
        np.concatenate([distances for _, distances in blocks]), hamming(queries, codes)
    )


def test_count_distances_counts_each_row_by_itself() -> None:
    distances = np.array([[0, 0, 8], [1, 8, 8]], dtype=np.uint16)
    assert count_distances(distances, bits=8).tolist() == [
        [2, 0, 0, 0, 0, 0, 0, 0, 1],
        [0, 1, 0, 0, 0, 0, 0, 0, 2],
    ]


@pytest.mark.parametrize("bits", [0, -8, 7, 20, 520, 8.0, "64", True, None])
def test_impossible_lengths_are_refused_by_name(bits: object) -> None:
    with pytest.raises(InputError, match="bits must be a multiple of 8 from 8 to 512, got"):
        check_bits(bits)  # type: ignore[arg-type]


def test_possible_lengths_come_back_as_plain_integers() -> None:
    assert [check_bits(bits) for bits in (8, 64, 512)] == [8, 64, 512]
    assert type(check_bits(np.int64(64))) is int  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "codes", [np.zeros((2, 8)), np.zeros(8, dtype=np.uint8), np.zeros((2, 0), dtype=np.uint8), [[1, 2]]]
)
def test_what_is_not_packed_codes_is_refused(codes: object) -> None:
    with pytest.raises(InputError, match=r"codes must be uint8|bits must be a multiple"):
        check_codes(codes)  # type: ignore[arg-type]


def test_real_values_are_not_taken_for_bits() -> None:
    with pytest.raises(InputError, match="must be 0 or 1"):
        pack(np.full((1, 8), 0.7))


def test_codes_of_different_lengths_are_not_compared() -> None:
    with pytest.raises(InputError, match="queries have 8 bits and the codes 16"):
        hamming(np.zeros((1, 1), dtype=np.uint8), np.zeros((1, 2), dtype=np.uint8))
    with pytest.raises(InputError, match="expected 16-bit codes, got 8-bit codes"):
        unpack(np.zeros((1, 1), dtype=np.uint8), bits=16)
