from __future__ import annotations

import numpy as np
import pytest

from snuh.errors import InputError
from snuh.index.ivf import IVF, choose_n_probe, measure_recall


@pytest.fixture(autouse=True)
def only_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """Never fall back to a scan of all rows, which makes every result of a small index exact."""
    monkeypatch.setattr("snuh.index.ivf.MAX_SCANNED_FRACTION", 2.0)


def random_codes(rows: int = 2000) -> np.ndarray:
    """Codes without index, so that few lists miss many neighbours."""
    return np.random.default_rng(0).integers(0, 256, (rows, 8), dtype=np.uint8)


def test_all_lists_find_everything() -> None:
    codes = random_codes()
    index = IVF.build(codes, n_lists=32)
    assert measure_recall(index, codes, k=10, n_probe=32, sample=50) == 1.0


def test_few_lists_miss_neighbors_in_others() -> None:
    codes = random_codes()
    index = IVF.build(codes, n_lists=32)
    few, more = (measure_recall(index, codes, k=10, n_probe=n_probe, sample=50) for n_probe in (1, 8))
    assert 0.1 <= few < more < 1  # each finds at least itself


def test_any_row_at_the_kth_distance_counts() -> None:
    codes = np.array([[0], [1], [2], [4], [8]], dtype=np.uint8)
    # One list per code; the query 0 is at distance 1 from all the others.
    index = IVF(codes, np.arange(6), np.arange(5, dtype=np.int32))
    found = index.search(codes[0], codes, k=2, n_probe=1)
    assert found.rows.tolist() == [0, 1]  # the first list has too few, so a second was read
    assert measure_recall(index, codes[:, :], k=2, n_probe=1, sample=5) == 1.0


def test_n_probe_is_the_smallest_power_of_two_that_reaches_the_target() -> None:
    codes = random_codes()
    index = IVF.build(codes, n_lists=32)
    n_probe, recall = choose_n_probe(index, codes, k=10, target_recall=0.8, sample=60)
    assert n_probe in (2, 4, 8, 16)
    assert recall == measure_recall(index, codes, k=10, n_probe=n_probe, sample=60) >= 0.8
    assert measure_recall(index, codes, k=10, n_probe=n_probe // 2, sample=60) < 0.8


def test_a_recall_of_one_can_always_be_reached() -> None:
    codes = random_codes()
    assert choose_n_probe(IVF.build(codes, n_lists=20), codes, k=10, target_recall=1.0, sample=30)[1] == 1.0


def test_the_recall_of_no_codes_is_one() -> None:
    codes = random_codes(0)
    assert measure_recall(IVF.build(codes), codes, k=10, n_probe=1) == 1.0


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"target_recall": 0.0}, "target_recall must be above 0"),
        ({"sample": 0}, "sample must be at least 1, got 0"),
    ],
)
def test_invalid_parameters_are_refused(changed: dict, message: str) -> None:
    codes = random_codes(50)
    with pytest.raises(InputError, match=message):
        choose_n_probe(IVF.build(codes), codes, **{"k": 3} | changed)
